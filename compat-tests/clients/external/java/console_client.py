#!/usr/bin/env python3
"""Kafka's console producer and consumer (Java): write ADDRESS TOPIC CODEC < records, read ADDRESS TOPIC N > records; a JSON record a line.

Line-oriented tools: a record is headers, key and value between separators; keys and values are text."""
import base64
import json
import os
import subprocess
import sys

TAB, COLON, COMMA, NULL, END = "<|>", "<:>", "<,>", "<null>", "<end>"
java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", os.environ["KAFKA_TOOLS"] + "/*"]


def raw(s):
    return NULL if s is None else base64.b64decode(s).decode()


def write(address, topic, codec):
    lines = []
    for line in sys.stdin:
        r = json.loads(line)
        headers = COMMA.join(h["key"] + COLON + raw(h["value"]) for h in r["headers"] or [])
        lines.append((headers or NULL) + TAB + raw(r["key"]) + TAB + raw(r["value"]) + "\n")
    prop = lambda k, v: ["--reader-property", f"{k}={v}"]
    subprocess.run(java + ["org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", address, "--topic", topic,
                           "--compression-codec", codec] + prop("parse.key", "true") + prop("parse.headers", "true") +
                   prop("headers.delimiter", TAB) + prop("key.separator", TAB) + prop("headers.separator", COMMA) +
                   prop("headers.key.separator", COLON) + prop("null.marker", NULL),
                   input="".join(lines).encode(), check=True, timeout=100, stdout=subprocess.DEVNULL)


def read(address, topic, n):
    prop = lambda k, v: ["--formatter-property", f"{k}={v}"]
    out = subprocess.run(java + ["org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", address,
                                 "--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", n] +
                         prop("print.key", "true") + prop("print.headers", "true") + prop("key.separator", TAB) +
                         prop("headers.separator", COMMA) + prop("line.separator", END) + prop("null.literal", NULL),
                         capture_output=True, check=True, timeout=100).stdout
    for line in out.split(END.encode())[:int(n)]:
        headers, key, value = line.split(TAB.encode(), 2)
        text = lambda b: None if b == NULL.encode() else base64.b64encode(b).decode()
        print(json.dumps({"key": text(key), "value": text(value), "headers": [
            {"key": h.split(":", 1)[0], "value": base64.b64encode(h.split(":", 1)[1].encode()).decode()}
            for h in headers.decode().split(COMMA) if h != "NO_HEADERS"]}))


globals()[sys.argv[1]](*sys.argv[2:])
