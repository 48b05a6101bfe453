"""Reading ahead: everything comes, in order, and the source is closed whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from service.pipeline.ahead import read_ahead


class Source:
    """Gives numbers, a group at each `asyncio.Event`, and then may fail."""

    def __init__(self, groups: list[list[int]], failure: Exception | None = None) -> None:
        self.gates = [asyncio.Event() for _ in range(len(groups) + 1)]
        self.is_closed = False
        self._groups = groups
        self._failure = failure

    async def items(self) -> AsyncGenerator[int]:
        try:
            for gate, group in zip(self.gates, self._groups, strict=False):
                await gate.wait()
                for number in group:
                    yield number
            await self.gates[-1].wait()
            if self._failure is not None:
                raise self._failure
        finally:
            self.is_closed = True


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_read_ahead_groups_available_items() -> None:
    source = Source([[1, 2], [3]])
    async with read_ahead(source.items()) as reading:
        groups = reading.groups()
        source.gates[0].set()
        await settle()
        assert await anext(groups) == [1, 2]
        waiting = asyncio.ensure_future(anext(groups))
        await settle()
        assert not waiting.done()
        source.gates[1].set()
        source.gates[2].set()
        assert await waiting == [3]
        assert [group async for group in groups] == []
    assert source.is_closed


async def test_read_ahead_yields_all_items_before_a_failure() -> None:
    source = Source([[1], [2]], failure=ValueError("no more"))
    for gate in source.gates:
        gate.set()
    async with read_ahead(source.items()) as reading:
        await settle()
        reading.check()  # something came, so the failure is told later
        groups = reading.groups()
        assert await anext(groups) == [1, 2]
        with pytest.raises(ValueError, match="no more"):
            await anext(groups)


async def test_read_ahead_check_raises_an_early_failure() -> None:
    source = Source([], failure=ValueError("at once"))
    source.gates[0].set()
    async with read_ahead(source.items()) as reading:
        await settle()
        with pytest.raises(ValueError, match="at once"):
            reading.check()
    assert source.is_closed


async def test_closing_read_ahead_closes_its_source() -> None:
    source = Source([[1], [2]])
    source.gates[0].set()
    async with read_ahead(source.items()) as reading:
        groups = reading.groups()
        assert await anext(groups) == [1]
        await groups.aclose()
    assert source.is_closed
