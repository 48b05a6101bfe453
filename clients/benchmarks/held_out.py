"""A share of texts as `dev`, where the files name no splits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from clients.benchmarks.base import ANY, Benchmark, Item, Part
from syntax.errors import SpecError
from syntax.examples import Mode


def with_dev_share(reader: Benchmark, share: float) -> Benchmark:
    """Reader that divides its texts into ``train`` and ``dev``; its files must not name splits.

    An example is in ``dev`` if the first eight bytes of the SHA-256 of its id, as a fraction of
    2**64, are less than ``share``. So it stays in its split when texts are added or removed.
    """
    if not 0 < share < 1:
        raise SpecError(f"the share of dev is {share}; expected more than 0 and less than 1")
    return replace(
        reader,
        find=partial(_find, reader),
        read_part=partial(_read, reader, share),
    )


def is_dev(example_id: str, share: float) -> bool:
    digest = hashlib.sha256(example_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def _find(reader: Benchmark, folder: Path) -> Sequence[Part]:
    parts = reader.find(folder)
    named = sorted({part.split for part in parts} - {ANY})
    if named:
        raise SpecError(
            f"{folder} has splits of its own ({', '.join(named)}); leave out the share of dev"
        )
    return [replace(part, split=split) for part in parts for split in ("train", "dev")]


def _read(reader: Benchmark, share: float, part: Part, mode: Mode) -> Iterator[Item]:
    if part.split not in ("train", "dev"):
        raise SpecError(f"with a share of dev the splits are train and dev; got {part.split!r}")
    for item in reader.read_part(part, mode):
        if is_dev(item.example_id, share) == (part.split == "dev"):
            yield item
