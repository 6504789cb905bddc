"""A small event server on Python's `websockets`, written for herd's tests.

`/live?after=<id>` sends what is newer than the id and then live events; `/publish` takes an event a message and answers
`{"id": ..}`. The log is a file with a line an event, so that it survives the process. BUG=forget plants a server that
begins with an empty log after a restart and takes an unknown cursor for "from now", without a word.
"""

import asyncio
import json
import os
import signal
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import broadcast, serve

PORT = int(os.environ["PORT"])
FILE = os.environ["LOG"]
BUG = os.environ.get("BUG", "")

log = []
if os.path.exists(FILE) and BUG != "forget":
    with open(FILE, encoding="utf-8") as stored:
        log = stored.read().splitlines()

live = set()


def frame(number):
    return f'{{"id": "{number}", "type": "event", "data": {log[number - 1]}}}'


async def publish(connection):
    async for message in connection:
        event = json.dumps(json.loads(message))
        with open(FILE, "a", encoding="utf-8") as stored:
            stored.write(event + "\n")
        log.append(event)
        broadcast(live, frame(len(log)))
        await connection.send(json.dumps({"id": len(log)}))


async def subscribe(connection, after):
    position = int(after) if after else len(log)
    # What is published while the replay awaits is replayed too; the subscription follows without an await between.
    while position < len(log):
        position += 1
        await connection.send(frame(position))
    live.add(connection)
    try:
        await connection.wait_closed()
    finally:
        live.discard(connection)


async def handle(connection):
    url = urlsplit(connection.request.path)
    if url.path == "/publish":
        await publish(connection)
    else:
        await subscribe(connection, parse_qs(url.query).get("after", [""])[0])


async def main():
    stop = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set_result, None)
    async with serve(handle, "127.0.0.1", PORT, backlog=4096, compression=None) as server:
        await stop
        server.close(code=1012, reason="restart")


asyncio.run(main())
