#!/usr/bin/env python3
"""Writes the seed corpus: the streams and frames on which published parsers went wrong, one a file.

The last byte says how it is read. Of an `sse` seed: how the stream is cut (see src/sse.rs); `A` leaves the limit large.
Of a `profile` seed: by which profile (see src/profile.rs); A to E are after, resume, sse, socketio and nestjs-ws.
"""

from pathlib import Path

HERE = Path(__file__).parent / "corpus"

SSE = {
    # Event stream parsing.
    "crlf-in-two-reads": b"data: a\r\ndata: b\r\n\r\n",
    "cr-only": b"data: a\rdata: b\r\r",
    "mixed-ends": b"data: a\r\ndata: b\n\r\n\r\n\n\r",
    "split-character": "data:x€y\n\ndata: 😀\n\n".encode(),
    "half-block": b"id: 1\ndata: x\n\nid: 2\ndata: half\n",
    "no-colon": b"data\n\nid\nevent\nretry\ndata\n\n",
    "nul-in-id": b"id: 1\nid: a\0b\ndata: x\n\n",
    "event-without-id": b"id: 1\ndata: x\n\ndata: y\n\n",
    "id-only": b"id: 5\n\nevent: ping\nid: 6\n\n",
    "empty-id": b"id: 7\ndata: x\n\nid:\ndata: y\n\n",
    "two-boms": b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\ndata: y\n\n",
    "one-bom": b"\xef\xbb\xbfdata: x\n\n",
    "bad-utf-8": b"data: a\xff\xe2\x82\xf0\x9f\x98b\n\n",
    "comments": b":\n\n: ping\n:data: no\nfoo: bar\ndata: x\n\n:410: 410 Gone\n",
    "retry": b"retry: 1500\nretry:0\nretry: -1\nretry: 99999999999999999999\n\n",
    "sse-starlette": b"id: 2\r\nevent: tick\r\ndata: line2\r\ndata: second\r\nretry: 1500\r\n\r\n: ping - 2026\r\n\r\n",
    "nestjs": b'\nevent: tick\nid: 2\nretry: 900\ndata: {"v":"b"}\n\n',
    "wikimedia-id": b'id: [{"topic":"eqiad.x","partition":0,"offset":-1}]\ndata: {}\n\n',
}

PROFILE = {
    # WebSocket frames.
    "fragments-put-together": b'{"id":12345678901234567890}',
    "two-in-one": b'[{"id":1},{"id":2,"data":{"seq":7}}]',
    "half": b'{"id":1,"da',
    "mangled": b'{"id":\x00\xff}',
    "socketio-event": b'42["event",{"id":"1","data":"hello"},"Q8hz_kk"]',
    "nestjs": b'{"event":"tick","data":{"id":2,"v":"b"}}',
    "socketio-open": b'0{"sid":"a","upgrades":[],"pingInterval":3000,"pingTimeout":2000}',
    "resume-error": b'{"type":"resume-error","reason":"unknown-id"}',
    "caught-up": b'{"type":"caught-up","lastEventId":"42"}',
    "reset": b'{"type":"reset","id":"9"}',
    "several-objects": b'{"push":{"pub":{"data":{"seq":1},"offset":1}}}\n{"push":{"pub":{"data":{},"offset":2}}}',
    # Ids.
    "snowflake": b'{"id":1796033310164893697,"data":{"seq":5,"payload":"x"}}',
    "above-2-63": b'{"id":"9223372036854775807"}',
    "exponent": b'{"id":1e2,"seq":"5"}',
    "composite": b'{"id":"1796033310:1"}',
    "urn": b'{"id":"urn:uuid:5e94c686-2c0b-4f9b-958c-92ccc3bbb4eb"}',
    "array-as-id": b'{"id":[{"topic":"x","offset":-1}]}',
    "path-as-id": b'{"id":"1/chat_42/y2023"}',
    "surrogates": b'{"id":"\\ud83d\\ude00","a":"\\ud83d"}',
    "deep": b'{"id":1,"data":' + b"[" * 200 + b"]" * 200 + b"}",
}

for target, seeds, tail in (("sse", SSE, b"A"), ("profile", PROFILE, None)):
    place = HERE / target
    place.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        for end in [tail] if tail else [b"A", b"B", b"C", b"D", b"E"]:
            (place / f"{name}-{end.decode()}").write_bytes(data + end)
