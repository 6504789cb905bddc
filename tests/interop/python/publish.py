"""Relays events from stdin (a JSON object a line) to the server's `/publish` and answers herd a line an event.

It outlives restarts of the server: an event that was not sent is answered `"ok": false`, one whose answer was lost is
not answered at all, because nobody knows what became of it.
"""

import json
import sys

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

URL = f"ws://127.0.0.1:{sys.argv[1]}/publish"


def answer(**fields):
    print(json.dumps(fields), flush=True)


connection = None
for line in sys.stdin:
    seq = json.loads(line)["seq"]
    if connection is None:
        try:
            connection = connect(URL, compression=None)
        except OSError:
            answer(seq=seq, ok=False)
            continue
    try:
        connection.send(line)
    except ConnectionClosed:
        connection = None
        answer(seq=seq, ok=False)
        continue
    try:
        answer(seq=seq, ok=True, id=json.loads(connection.recv())["id"])
    except ConnectionClosed:
        connection = None
