"""Reading ahead: what came before a failure comes first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from service.pipeline.ahead import read_ahead


async def test_read_ahead_yields_all_items_before_a_failure() -> None:
    async def source() -> AsyncGenerator[int]:
        yield 1
        await asyncio.sleep(0)
        yield 2
        raise ValueError("no more")

    async with read_ahead(source()) as reading:
        for _ in range(10):
            await asyncio.sleep(0)
        reading.check()  # something came, so the failure is told later
        groups = reading.groups()
        assert await anext(groups) == [1, 2]
        with pytest.raises(ValueError, match="no more"):
            await anext(groups)
