"""The wire between the server and a model process: a frame is its length (4 bytes, big-endian) and that much JSON."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

from seqloom.core.rows import Json

MOST = 64 << 20  # bytes of a frame
_LENGTH = struct.Struct(">I")
_LARGE = 1 << 18  # bytes from which on a thread reads the JSON, so that other requests need not wait


class Broken(Exception):
    """The bytes that arrived are not a frame."""


def pack(value: Json) -> bytes:
    data = json.dumps(value, separators=(",", ":")).encode("ascii")
    if len(data) > MOST:
        raise Broken(f"a frame of {len(data):,} bytes")
    return _LENGTH.pack(len(data)) + data


def unpack(data: bytes) -> Json:
    try:
        value: Any = json.loads(data)
    except ValueError:
        raise Broken("a frame that is not JSON") from None
    if not isinstance(value, dict):
        raise Broken("a frame that is not an object")
    return value


def length_of(head: bytes) -> int:
    length = int(_LENGTH.unpack(head)[0])
    if length > MOST:
        raise Broken(f"a frame of {length:,} bytes")
    return length


async def read(reader: asyncio.StreamReader) -> Json | None:
    """The next frame; None at the end."""
    try:
        data = await reader.readexactly(length_of(await reader.readexactly(_LENGTH.size)))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return await asyncio.to_thread(unpack, data) if len(data) > _LARGE else unpack(data)


def receive(wire: socket.socket) -> Json | None:
    """The same for a process without an event loop."""
    head = _exactly(wire, _LENGTH.size)
    data = None if head is None else _exactly(wire, length_of(head))
    return None if data is None else unpack(data)


def send(wire: socket.socket, value: Json) -> None:
    wire.sendall(pack(value))


def _exactly(wire: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        part = wire.recv(min(count - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)
