#!/usr/bin/env python3
"""kafka-python (pure Python): write ADDRESS TOPIC CODEC < records, read ADDRESS TOPIC N > records; a JSON record a line."""
import base64
import json
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def raw(s):
    return None if s is None else base64.b64decode(s)


def text(b):
    return None if b is None else base64.b64encode(b).decode()


def write(address, topic, codec):
    p = KafkaProducer(bootstrap_servers=address, compression_type=None if codec == "none" else codec, acks="all")
    sent = []
    for line in sys.stdin:
        r = json.loads(line)
        sent.append(p.send(topic, partition=0, key=raw(r["key"]), value=raw(r["value"]),
                           headers=[(h["key"], raw(h["value"])) for h in r["headers"] or []]))
    p.flush(50)
    for f in sent:
        f.get(10)
    p.close()


def read(address, topic, n):
    c = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", consumer_timeout_ms=50000,
                      enable_auto_commit=False, group_id=None)
    tp = TopicPartition(topic, 0)
    c.assign([tp])
    c.seek_to_beginning(tp)
    got = 0
    for m in c:
        print(json.dumps({"key": text(m.key), "value": text(m.value),
                          "headers": [{"key": k, "value": text(v)} for k, v in m.headers]}))
        got += 1
        if got == int(n):
            break
    c.close()
    if got < int(n):
        sys.exit(f"{got} of {n} records in 50 s")


globals()[sys.argv[1]](*sys.argv[2:])
