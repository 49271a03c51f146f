#!/usr/bin/env python3
"""confluent-kafka (librdkafka): transform ADDRESS ID GROUP FROM TO N: reads N records of FROM in the group and writes
them to TO in transactions of ten, with the offsets; every third transaction is aborted and done again."""
import sys
import time

import confluent_kafka as ck


def main(address, txn, group, source, result, n):
    n = int(n)
    c = ck.Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False,
                     "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
    c.subscribe([source])
    p = ck.Producer({"bootstrap.servers": address, "transactional.id": txn, "transaction.timeout.ms": 20000})
    p.init_transactions(30)
    end = time.time() + 50
    done = number = 0
    while done < n:
        batch = []
        while len(batch) < min(10, n - done):
            if time.time() > end:
                sys.exit(f"{done} of {n} records in 50 s")
            m = c.poll(1)
            if m is None:
                continue
            if m.error():
                sys.exit(str(m.error()))
            batch.append(m)
        for commit in ([False, True] if number % 3 == 0 else [True]):
            p.begin_transaction()
            for m in batch:
                p.produce(result, key=m.key(), value=m.value(), partition=0)
            p.flush(30)
            p.send_offsets_to_transaction(c.position(c.assignment()), c.consumer_group_metadata(), 30)
            if commit:
                p.commit_transaction(30)
            else:
                p.abort_transaction(30)
        done += len(batch)
        number += 1
    c.close()


main(*sys.argv[2:])
