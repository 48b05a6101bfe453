"""Pools are read while a thread fetches the files of the next one, which ends with the reading."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from featurestore.stream.prefetch import windows_ahead
from syntax.errors import StoreError

from .writers import wait_for


class Pools:
    """A reader that says what it is asked for; its fetches last until nobody wants them."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.fault = fault

    def fetch(self, examples: NDArray[np.int64], is_wanted: Callable[[], bool]) -> None:
        self.asked.append(f"fetch {examples[0]}")
        if self.fault is not None:
            raise self.fault
        while is_wanted():
            threading.Event().wait(0.005)
        self.asked.append(f"end {examples[0]}")

    def read(self, examples: NDArray[np.int64]) -> str:
        self.asked.append(f"read {examples[0]}")
        return f"window {examples[0]}"


def pools(count: int) -> Iterator[tuple[str, NDArray[np.int64]]]:
    return ((f"pool {number}", np.array([number])) for number in range(count))


def test_the_next_pool_is_fetched_after_this_one_was_read() -> None:
    reader = Pools()
    windows = windows_ahead(pools(2), reader)  # type: ignore[arg-type]
    assert next(windows) == ("pool 0", "window 0")
    wait_for(lambda: reader.asked == ["read 0", "fetch 1"])
    assert next(windows) == ("pool 1", "window 1")
    assert list(windows) == []
    wait_for(lambda: reader.asked[-1] == "end 1")


def test_closing_a_stream_stops_prefetch() -> None:
    reader = Pools()
    windows = windows_ahead(pools(2), reader)  # type: ignore[arg-type]
    next(windows)
    windows.close()  # type: ignore[attr-defined]
    wait_for(lambda: reader.asked == ["read 0", "fetch 1", "end 1"])


def test_prefetch_leaves_store_errors_to_the_reader() -> None:
    reader = Pools(StoreError("gone"))
    assert len(list(windows_ahead(pools(3), reader))) == 3  # type: ignore[arg-type]
    wait_for(lambda: {"fetch 1", "fetch 2"} <= set(reader.asked))


@pytest.mark.parametrize("count", [0, 1])
def test_single_pool_needs_no_prefetch(count) -> None:
    reader = Pools()
    assert len(list(windows_ahead(pools(count), reader))) == count  # type: ignore[arg-type]
    assert reader.asked == ["read 0"][:count]


def test_program_can_exit_during_prefetch() -> None:
    program = (
        "from tests.featurestore.test_prefetch import *\n"
        "reader = Pools()\n"
        "windows = windows_ahead(pools(2), reader)\n"
        "print(next(windows))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "('pool 0', 'window 0')\n"
