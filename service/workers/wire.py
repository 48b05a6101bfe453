"""Frames between the service and its parser processes: a length, then a pickle.

Both ends are ours and talk over a private socket pair, so pickle is safe here.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
from typing import Any, Final

_LENGTH: Final = struct.Struct("!I")


def pack(message: Any) -> bytes:
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


def send(channel: socket.socket, message: Any) -> None:
    channel.sendall(pack(message))


def receive(channel: socket.socket) -> Any:
    """Receive a frame; an `EOFError` if the other end is gone."""
    (length,) = _LENGTH.unpack(_read_exactly(channel, _LENGTH.size))
    return pickle.loads(_read_exactly(channel, length))


async def receive_async(reader: asyncio.StreamReader) -> Any:
    """Receive a frame; an `EOFError` if the other end is gone."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return pickle.loads(await reader.readexactly(length))
    except ConnectionError as error:
        raise EOFError from error


def _read_exactly(channel: socket.socket, size: int) -> bytes:
    chunks = []
    while size:
        chunk = channel.recv(min(size, 1 << 20))
        if not chunk:
            raise EOFError
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)
