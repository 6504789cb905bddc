"""Clients of Python's websockets, one per port: clients.py PORT...

As clients.mjs: notes when the library dials and when that attempt or connection ends, here in an event loop of its own
kind, and how late that loop is; says so on stdout in the same form.
"""

import asyncio
import json
import os
import sys
import time

import websockets
from websockets.asyncio.client import connect

PERIOD = 0.010
ports = [int(port) for port in sys.argv[1:]]
events = []
busy = []


def now():
    return time.monotonic() * 1000


def note(port, what):
    events.append([ports.index(port), what, now()])


class Loop(asyncio.SelectorEventLoop):
    async def sock_connect(self, sock, address):
        note(address[1], "dial")
        try:
            await super().sock_connect(sock, address)
        except OSError:
            note(address[1], "end")
            raise
        note(address[1], "connected")

    async def create_connection(self, factory, host=None, port=None, **options):
        def watched():
            protocol = factory()
            lost = protocol.connection_lost

            def connection_lost(error):
                note(port, "end")
                lost(error)

            protocol.connection_lost = connection_lost
            return protocol

        return await super().create_connection(watched, host, port, **options)


def tell(what, port):
    note(port, what)
    print(what, ports.index(port), flush=True)


async def client(port):
    async for websocket in connect(f"ws://127.0.0.1:{port}", proxy=None):
        tell("ready", port)
        try:
            async for _ in websocket:
                pass
        except websockets.ConnectionClosed:
            continue


async def watch():
    before = now()
    while True:
        await asyncio.sleep(PERIOD)
        after = now()
        if after - before > PERIOD * 1000 + 5:
            busy.append([before, after])
        before = after


async def main():
    tasks = [asyncio.create_task(one) for one in [*map(client, ports), watch()]]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps({"version": websockets.__version__, "events": events, "busy": busy}), flush=True)
    # What the tasks still hold need not be let go in order.
    os._exit(any(task.done() for task in tasks))


with asyncio.Runner(loop_factory=Loop) as runner:
    runner.run(main())
