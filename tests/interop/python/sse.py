"""A small event server on `sse-starlette`, for uvicorn: GET /events with Last-Event-ID, POST /publish.

The log is a file with a line an event, so that it survives the process. BUG=deaf plants a server that ignores the header
and sends everything from the beginning to whoever comes. BUG=stay sends the same bytes by Starlette's own response, which
doesn't hear of a shutdown: on SIGTERM uvicorn closes its port and then waits for ever for the open streams.
"""

import asyncio
import json
import os

from sse_starlette import EventSourceResponse
from sse_starlette.event import ensure_bytes
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

FILE = os.environ["LOG"]
BUG = os.environ.get("BUG", "")

log = []
if os.path.exists(FILE):
    with open(FILE, encoding="utf-8") as stored:
        log = stored.read().splitlines()

news = asyncio.Event()


async def publish(request):
    global news
    event = json.dumps(await request.json())
    with open(FILE, "a", encoding="utf-8") as stored:
        stored.write(event + "\n")
    log.append(event)
    number = len(log)
    news.set()
    news = asyncio.Event()
    return JSONResponse({"id": number}, 201)


async def stream(position):
    # One position walks through the log, replayed and live parts alike, so there is no handoff to get wrong.
    # Over HTTP/2 nginx keeps the answer's head back until there is a first byte, so there is one at once.
    yield {"comment": "hello"}
    while True:
        while position < len(log):
            position += 1
            yield {"id": str(position), "event": "event", "data": log[position - 1]}
        await news.wait()


async def events(request):
    after = request.headers.get("last-event-id")
    position = int(after) if after else len(log)
    if BUG == "deaf":
        position = 0
    if BUG == "stay":
        encoded = (ensure_bytes(event, "\r\n") async for event in stream(position))
        return StreamingResponse(encoded, media_type="text/event-stream")
    return EventSourceResponse(stream(position))


app = Starlette(routes=[Route("/events", events), Route("/publish", publish, methods=["POST"])])
