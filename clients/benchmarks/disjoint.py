"""Splits that share no text, of a benchmark whose released splits do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import ANY, Benchmark, Item, Part, canonical_split
from syntax.errors import ExampleError, SpecError
from syntax.examples import Example, Mode, Rejection

LATER: Final = {"train": ("dev", "test"), "dev": ("test",), "test": ()}
"""Splits that keep a text that an earlier split has, too."""


def without_shared_texts(reader: Benchmark) -> Benchmark:
    """Reader of the same files that leaves out texts of later splits.

    All of ``test`` is read, so that scores compare with those of the released splits; of ``dev``
    and ``train`` the examples without a text that is read of a later split.
    """
    return replace(
        reader,
        name=f"{reader.name}_disjoint",
        find=partial(_find, reader),
        read_part=partial(_read, reader),
        rejects={
            **reader.rejects,
            "example": f"{reader.rejects['example']}; an example with a text of a later split",
        },
        quirks=(*reader.quirks, "test is as released; dev and train share no text with it"),
        general=True,
    )


def _find(reader: Benchmark, folder: Path) -> Sequence[Part]:
    return [replace(part, root=folder) for part in reader.find(folder)]


def _read(reader: Benchmark, part: Part, mode: Mode) -> Iterator[Item]:
    split = canonical_split(part.split)
    if part.root is None or split not in LATER:
        raise SpecError(
            f"{part.files[0]} came without the other splits, whose texts are to be left out; give "
            "the folder of train, dev and test"
        )
    taken = {text: later for later in LATER[split] for text in _kept(reader, part, later, mode)}
    for item in reader.read_part(part, mode):
        yield _checked(item, taken)


def _kept(reader: Benchmark, part: Part, split: str, mode: Mode) -> set[str | None]:
    assert part.root is not None
    texts: set[str | None] = set()
    for other in reader.find(part.root):
        if canonical_split(other.split) == split and other.lang in (part.lang, ANY):
            items = _read(reader, replace(other, root=part.root), mode)
            texts.update(
                segment.text for x in items if isinstance(x, Example) for segment in x.segments
            )
    return texts


def _checked(item: Item, taken: dict[str | None, str]) -> Item:
    if isinstance(item, Rejection):
        return item
    found = [taken[one.text] for one in item.segments if one.text in taken]
    if not found:
        return item
    return Rejection(
        item.example_id, ExampleError.error_type, f"a text of it is in {found[0]}, too"
    )
