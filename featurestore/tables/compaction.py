"""Choice of the files to join, so that each row is written again a few times at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from featurestore.tables.snapshot import DataFile

FILE_BYTES: Final = 100 << 20
"""Approximate bytes of a file that joins others; larger ones are left alone."""

TIERS: Final = 3
"""Sizes up to which files are joined: a hundredth of `FILE_BYTES`, a tenth, and all of it."""

_STEP: Final = 10

Part = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Join:
    """Files of one partition that are to be joined, to files of about ``target`` bytes."""

    part: Part
    target: int

    def groups(self, files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
        """Files to join together, those of newer rows first; `maintenance.evict` needs this."""
        own = (file for file in files if tuple(file.partition.items()) == self.part)
        small = [file for file in own if file.size < self.target]
        group: list[DataFile] = []
        for file in sorted(small, key=lambda file: (-file.written, file.path)):
            if group and sum(x.size for x in group) + file.size > self.target:
                if len(group) > 1:
                    yield group
                group = []
            group.append(file)
        if len(group) > 1:
            yield group


def joins(
    files: Sequence[DataFile], file_bytes: int = FILE_BYTES, tiers: int = TIERS, least: int = 2
) -> list[Join]:
    """In each partition, choose the files below the largest tier that small ones fill.

    Without a full tier, it is the first. Files that join others compress better and stay below
    their tier, so only those below a quarter of a tier count: what was joined waits for the next.
    """
    targets = [file_bytes // _STEP**tier for tier in range(TIERS)][::-1][:tiers]
    chosen = []
    for part, sizes in partition_sizes(files).items():
        full = [target for target in targets if sum(_below(sizes, target // 4)) >= target]
        target = max(full, default=targets[0])
        small = _below(sizes, target)
        # Where there are more, some of them fit into one file, in whatever order they are packed:
        # two files that follow one another are larger than the target together.
        if len(small) > 1 + 2 * sum(small) / target and len(small) >= least:
            chosen.append(Join(part, target))
    return chosen


def to_sort(files: Sequence[DataFile], file_bytes: int = FILE_BYTES) -> list[Part]:
    """The partitions to sort as a whole: they have several small files, and no larger ones."""
    return [
        part
        for part, sizes in partition_sizes(files).items()
        if len(sizes) > 1 + sum(sizes) // file_bytes and max(sizes) < file_bytes // 4
    ]


def partition_sizes(files: Sequence[DataFile]) -> dict[Part, list[int]]:
    sizes: dict[Part, list[int]] = {}
    for file in files:
        sizes.setdefault(tuple(file.partition.items()), []).append(file.size)
    return sizes


def _below(sizes: Sequence[int], target: int) -> list[int]:
    return [size for size in sizes if size < target]
