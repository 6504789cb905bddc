"""A Kafka cluster of one mock broker, and herd's way into its topic.

`kafka.py cluster FILE` starts librdkafka's mock cluster, writes its address to the file and runs until its stdin ends.
`kafka.py publish ADDRESS TOPIC` stores the events of stdin (a JSON object a line) in the topic, one after the other, and
answers herd a line an event, with the offset as the id.
"""

import json
import os
import sys

from confluent_kafka import Producer

# The mock broker makes a topic of several partitions by itself; order exists in one of them only.
PARTITION = 0


def cluster(file):
    producer = Producer({"test.mock.num.brokers": 1})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    with open(file + ".new", "w", encoding="utf-8") as address:
        address.write(f"{broker.host}:{broker.port}")
    os.rename(file + ".new", file)
    sys.stdin.read()


def publish(address, topic):
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 0})

    for line in sys.stdin:
        answer = {"seq": json.loads(line)["seq"]}

        def stored(error, message):
            # After an error nobody knows whether the event was stored: no answer.
            if error is None:
                answer.update(ok=True, id=str(message.offset()))

        producer.produce(topic, line.strip(), partition=PARTITION, on_delivery=stored)
        producer.flush()
        if "ok" in answer:
            print(json.dumps(answer), flush=True)


{"cluster": cluster, "publish": publish}[sys.argv[1]](*sys.argv[2:])
