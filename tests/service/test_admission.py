"""Requests begin a few in each turn of the event loop, in their order; health checks at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from service.middleware.admission import AdmissionMiddleware


class Turns:
    """An app that notes in which turn of the loop each request began."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int]] = []
        self.now = 0
        asyncio.get_running_loop().call_soon(self._count)

    def _count(self) -> None:
        self.now += 1
        if self.now < 100:
            asyncio.get_running_loop().call_soon(self._count)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.append((scope["path"], self.now))

    def paths(self) -> list[str]:
        return [path for path, _ in self.begun]


async def come(gate: AdmissionMiddleware, path: str, kind: str = "http") -> None:
    await gate({"type": kind, "path": path}, None, None)  # type: ignore[arg-type]


async def test_admission_starts_at_most_its_limit_per_turn() -> None:
    app = Turns()
    gate = AdmissionMiddleware(app, at_once=4)
    names = [f"/{number}" for number in range(30)]
    await asyncio.gather(*(come(gate, name) for name in names))
    assert app.paths() == names
    turns = [turn for _, turn in app.begun]
    assert max(turns.count(turn) for turn in turns) <= 4
    assert turns[-1] - turns[0] >= 6


async def test_admission_lets_health_checks_pass() -> None:
    app = Turns()
    gate = AdmissionMiddleware(app, at_once=2)
    others = [asyncio.create_task(come(gate, f"/{number}")) for number in range(20)]
    await asyncio.sleep(0)
    await come(gate, "/health/live")
    assert len(app.begun) <= 5
    await asyncio.gather(*others)
    assert len(app.begun) == 21


async def test_admission_never_delays_sequential_requests() -> None:
    app = Turns()
    gate = AdmissionMiddleware(app, at_once=1)
    for number in range(3):
        await come(gate, f"/{number}")
        await asyncio.sleep(0.001)
    assert app.paths() == ["/0", "/1", "/2"]


async def test_admission_skips_cancelled_requests() -> None:
    app = Turns()
    gate = AdmissionMiddleware(app, at_once=1)
    tasks = [asyncio.create_task(come(gate, f"/{number}")) for number in range(6)]
    await asyncio.sleep(0)
    for task in tasks[1:5]:
        task.cancel()
    await asyncio.wait(tasks, timeout=5)
    assert app.paths() == ["/0", "/5"]


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
async def test_admission_ignores_other_scopes(kind: str) -> None:
    app = Turns()
    gate = AdmissionMiddleware(app, at_once=1)
    await asyncio.gather(*(come(gate, "/", kind) for _ in range(3)))
    assert len({turn for _, turn in app.begun}) == 1
