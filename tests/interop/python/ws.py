"""A small event server on Python's `websockets`.

`/live?after=<id>` sends what is newer than the id and then live events. `/resume` waits for a `resume` frame: with a
`lastEventId` it sends what was missed, without one the last 100 events; then `caught-up`, then live events. An id that it
can't resume from is answered by `resume-error`, and only what is new follows. `/publish` takes an event a message and
answers `{"id": ..}`. The log is a file with a line an event, so that it survives the process.

RETAIN=n lets a resume go back n events only. BUG=forget plants a server that begins with an empty log after a restart
and takes an unknown cursor for "from now", without a word; BUG=skip a replay that begins one event too late.
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
RETAIN = int(os.environ.get("RETAIN", 1_000_000))
RECENT = 100

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


async def replay(connection, position):
    """What is published while this awaits is replayed too; when it returns, nothing is missing and nothing awaited."""
    while position < len(log):
        position += 1
        await connection.send(frame(position))
    return position


async def stay(connection):
    live.add(connection)
    try:
        await connection.wait_closed()
    finally:
        live.discard(connection)


async def subscribe(connection, after):
    await replay(connection, int(after) if after else len(log))
    await stay(connection)


async def resume(connection):
    after = json.loads(await connection.recv()).get("lastEventId")
    position = int(after) if after else max(0, len(log) - RECENT)
    known = len(log) - RETAIN <= position <= len(log)
    if after and not known and BUG != "forget":
        await connection.send(json.dumps({"type": "resume-error", "reason": "unknown-id"}))
        position = len(log)
    else:
        position += BUG == "skip" and bool(after)
        position = await replay(connection, min(position, len(log)))
        await connection.send(json.dumps({"type": "caught-up", "lastEventId": str(position)}))
    await replay(connection, position)
    await stay(connection)


async def handle(connection):
    url = urlsplit(connection.request.path)
    if url.path == "/publish":
        await publish(connection)
    elif url.path == "/resume":
        await resume(connection)
    else:
        await subscribe(connection, parse_qs(url.query).get("after", [""])[0])


async def main():
    stop = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set_result, None)
    async with serve(handle, "127.0.0.1", PORT, backlog=4096, compression=None) as server:
        await stop
        server.close(code=1012, reason="restart")


asyncio.run(main())
