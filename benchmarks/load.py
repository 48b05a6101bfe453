"""An HTTP/1.1 load: prepared requests over kept-alive connections, and how long each took.

Written on bare sockets, for the client shares the machine with the server: a comfortable client
would cost more than what it measures.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import uvloop


@dataclass(frozen=True)
class Load:
    """What a run of requests came to; times in seconds."""

    seconds: float
    times: list[float] = field(repr=False)
    statuses: dict[int, int]

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.times) / self.seconds

    def quantile(self, share: float) -> float:
        """Time within which ``share`` of the requests were answered."""
        return sorted(self.times)[min(int(share * len(self.times)), len(self.times) - 1)]

    @property
    def median(self) -> float:
        """Time within which half of the requests were answered."""
        return statistics.median(self.times)

    def summary(self) -> dict[str, float]:
        """The figures that are kept, times in milliseconds."""
        return {
            "requests_per_second": round(self.rate, 1),
            "p50_ms": round(1e3 * self.median, 3),
            "p99_ms": round(1e3 * self.quantile(0.99), 3),
        }


def post(path: str, body: object) -> bytes:
    """A POST request of JSON."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Accept: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def get(path: str) -> bytes:
    """A GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n".encode()


def run(url: str, requests: Iterable[bytes], concurrency: int) -> Load:
    """Send requests over as many connections as ``concurrency`` says, each at once after its last.

    Raises:
        AssertionError: A request was not answered with 200.
    """
    load = uvloop.run(load_async(url, iter(requests), concurrency))
    assert set(load.statuses) == {200}, load.statuses
    return load


async def load_async(url: str, requests: Iterator[bytes], concurrency: int) -> Load:
    """As `run`, within an event loop, whatever the statuses."""
    times: list[float] = []
    statuses: dict[int, int] = {}
    started = time.perf_counter()
    await asyncio.gather(*(_connection(url, requests, times, statuses) for _ in range(concurrency)))
    return Load(time.perf_counter() - started, times, statuses)


def repeat(request: bytes, count: int) -> Iterator[bytes]:
    """The same request so many times."""
    return itertools.repeat(request, count)


async def _connection(
    url: str, requests: Iterator[bytes], times: list[float], statuses: dict[int, int]
) -> None:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 24)
    try:
        for request in requests:
            started = time.perf_counter()
            writer.write(request)
            status = await _answer(reader)
            times.append(time.perf_counter() - started)
            statuses[status] = statuses.get(status, 0) + 1
    finally:
        writer.close()


async def _answer(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head[9:12])
