"""Recognise which reader fits a path."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Final

from clients.benchmarks.base import BENCHMARKS, Benchmark, Item
from syntax.errors import ParsebankError, UnknownNameError
from syntax.examples import Rejection

LOOKED_AT: Final = 100

PASSED_OVER: Final = 10_000
"""Most items to read, because items of blind files do not count."""


def fitting(path: Path) -> list[str]:
    """Names of the readers that make examples of at least half of the first items.

    Unlabelled examples of blind files do not count. General readers are returned only if no other
    fits.
    """
    fits = {name for name, reader in BENCHMARKS.items() if _fits(reader, path)}
    known = [name for name in BENCHMARKS if name in fits and not BENCHMARKS[name].general]
    return known or [name for name in BENCHMARKS if name in fits]


def recognised(path: Path) -> str:
    if not path.exists():
        raise UnknownNameError(f"there is no file or folder {path}", path=str(path))
    names = fitting(path)
    if len(names) != 1:
        which = f"the readers {', '.join(names)} fit" if names else "no reader fits"
        raise UnknownNameError(
            f"{which} {path}; name the one that you mean, see `parsebank benchmarks list`",
            path=str(path),
            known=names,
        )
    return names[0]


def _fits(reader: Benchmark, path: Path) -> bool:
    if reader.bundled is not None or reader.named_only:
        return False
    try:
        parts = (reader.read_part(part, reader.modes[0]) for part in reader.parts(path))
        telling = filter(_tells, islice(chain.from_iterable(parts), PASSED_OVER))
        items = list(islice(telling, LOOKED_AT))
    except (ParsebankError, OSError):
        return False
    rejected = sum(isinstance(item, Rejection) for item in items)
    return 2 * rejected <= len(items) and bool(items)


def _tells(item: Item) -> bool:
    return isinstance(item, Rejection) or not item.labels or set(item.labels.values()) != {None}
