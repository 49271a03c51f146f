#!/usr/bin/env python3
"""kcat (librdkafka, C): write ADDRESS TOPIC CODEC < records, read ADDRESS TOPIC N > records; a JSON record a line."""
import base64
import itertools
import json
import subprocess
import sys

KEY, END = "<key>", "<end>"


def write(address, topic, codec):
    # Records of one kind go through one run: headers are an argument, and -Z makes an empty value none.
    records = [json.loads(line) for line in sys.stdin]
    kind = lambda r: (json.dumps(r["headers"]), r["value"] is None)
    for _, run in itertools.groupby(records, kind):
        run = list(run)
        args = ["kcat", "-P", "-b", address, "-t", topic, "-p", "0", "-z", codec, "-X", "enable.idempotence=true",
                "-D", END, "-K", KEY]
        for h in run[0]["headers"] or []:
            args += ["-H", h["key"] + "=" + base64.b64decode(h["value"]).decode()]
        if run[0]["value"] is None:
            args.append("-Z")
        data = b""
        for r in run:
            if r["key"] is not None:
                data += base64.b64decode(r["key"]) + KEY.encode()
            data += base64.b64decode(r["value"] or "") + END.encode()
        subprocess.run(args, input=data, check=True, timeout=100)


def read(address, topic, n):
    # %K and %S are lengths (-1: null), %R packs the value's length in binary.
    out = subprocess.run(["kcat", "-C", "-b", address, "-t", topic, "-p", "0", "-o", "beginning", "-c", n, "-q",
                          "-f", "%K %S %h\n%k%s\n"], check=True, timeout=60, capture_output=True).stdout
    at = 0
    for _ in range(int(n)):
        end = out.index(b"\n", at)
        klen, vlen, headers = out[at:end].decode().split(" ", 2)
        klen, vlen, at = int(klen), int(vlen), end + 1
        key = out[at:at + max(klen, 0)]
        at += len(key)
        value = out[at:at + max(vlen, 0)]
        at += len(value) + 1
        print(json.dumps({
            "key": None if klen < 0 else base64.b64encode(key).decode(),
            "value": None if vlen < 0 else base64.b64encode(value).decode(),
            "headers": [{"key": h.split("=", 1)[0], "value": base64.b64encode(h.split("=", 1)[1].encode()).decode()}
                        for h in headers.split(",") if h],
        }))


globals()[sys.argv[1]](*sys.argv[2:])
