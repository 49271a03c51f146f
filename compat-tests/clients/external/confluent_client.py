#!/usr/bin/env python3
"""confluent-kafka (librdkafka): write ADDRESS TOPIC CODEC < records, read ADDRESS TOPIC N > records; a JSON record a line."""
import base64
import json
import sys
import time

import confluent_kafka as ck


def raw(s):
    return None if s is None else base64.b64decode(s)


def text(b):
    return None if b is None else base64.b64encode(b).decode()


def write(address, topic, codec):
    p = ck.Producer({"bootstrap.servers": address, "compression.type": codec, "enable.idempotence": True})
    errors = []
    for line in sys.stdin:
        r = json.loads(line)
        p.produce(topic, partition=0, key=raw(r["key"]), value=raw(r["value"]),
                  headers=[(h["key"], raw(h["value"])) for h in r["headers"] or []],
                  callback=lambda e, m: e and errors.append(str(e)))
        p.poll(0)
    left = p.flush(50)
    if errors or left:
        sys.exit(f"{len(errors)} errors, {left} records not sent: {errors[:1]}")


def read(address, topic, n):
    # The client wants a group id, but joins no group when partitions are assigned.
    c = ck.Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False,
                     "enable.auto.offset.store": False})
    c.assign([ck.TopicPartition(topic, 0, 0)])
    end = time.time() + 50
    got = 0
    while got < int(n):
        m = c.poll(1)
        if time.time() > end:
            sys.exit(f"{got} of {n} records in 50 s")
        if m is None:
            continue
        if m.error():
            sys.exit(str(m.error()))
        got += 1
        print(json.dumps({"key": text(m.key()), "value": text(m.value()),
                          "headers": [{"key": k, "value": text(v)} for k, v in m.headers() or []]}))
    c.close()


globals()[sys.argv[1]](*sys.argv[2:])
