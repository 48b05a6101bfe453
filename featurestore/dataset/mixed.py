"""A large dataset with a small one repeated in it: text that a parser read, and a treebank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from featurestore.dataset.dataset import FeatureDataset
from featurestore.tables.files import FileReader
from featurestore.tables.rows import RowIndex
from syntax.errors import SpecError

_OF_SECOND: Final = "2:"
"""Prefix of the paths of the second table; Delta's own begin with a folder's name."""


class TreebankTooLargeError(SpecError):
    """A treebank would have to be cut, rather than repeated, to have its share."""


class JoinedReader(FileReader):
    """Reads the files of two tables as if they were of one."""

    def __init__(self, first: FileReader, second: FileReader) -> None:
        super().__init__(first.location, schema=first._schema)
        self._first, self._second = first, second

    def __reduce__(self) -> tuple[type[JoinedReader], tuple[Any, ...]]:
        return JoinedReader, (self._first, self._second)

    @contextmanager
    def _opened(self, path: str, keep: bool = True) -> Iterator[Any]:
        reader, own = self._of(path)
        with reader._opened(own, keep) as opened:
            yield opened

    def fetch(self, paths: Iterable[str], is_wanted: Callable[[], bool] = lambda: True) -> None:
        for path in paths:
            reader, own = self._of(path)
            reader.fetch([own], is_wanted)

    def renew_lease(self) -> None:
        self._first.renew_lease()
        self._second.renew_lease()

    def _of(self, path: str) -> tuple[FileReader, str]:
        if path.startswith(_OF_SECOND):
            return self._second, path.removeprefix(_OF_SECOND)
        return self._first, path


def with_repeated(data: FeatureDataset, gold: FeatureDataset, every: int) -> FeatureDataset:
    """The examples of ``data``, with one of ``gold`` after each ``every`` of them.

    Those of ``gold`` are taken in turn, from the first again after the last, and streams shuffle
    all of them together. An example that comes again has another ``example_id`` in batches, so that
    samplers draw anew.
    """
    for what in ("tokenizer_fingerprint", "fields", "labels"):
        ours, theirs = getattr(data.card, what), getattr(gold.card, what)
        if ours != theirs:
            raise SpecError(f"{data.name} has the {what} {ours}, {gold.name} has {theirs}")
    places = len(data) // every
    if not len(gold):
        raise SpecError(f"{gold.name} has no examples to repeat; its drops say why")
    if len(gold) > places:
        fitting = len(data) // len(gold)
        advice = (
            f"set data.gold_every={fitting}, or add text"
            if fitting
            else "add text: there must be as much of it as of the treebank, data.gold_every=1"
        )
        raise TreebankTooLargeError(
            f"{gold.name} has {len(gold)} examples, to be one in {every + 1}, and {len(data)} of "
            f"{data.name} leave room for {places}; {advice}",
            examples=len(gold),
            places=places,
        )
    turn, own = np.arange(places), np.arange(len(data))
    before = every * (turn + 1)
    order = np.insert(own, before, len(data) + turn % len(gold))
    repeat = np.insert(np.zeros_like(own), before, turn // len(gold))
    theirs = replace(gold.rows, paths=tuple(_OF_SECOND + path for path in gold.rows.paths))
    rows = RowIndex.joined(data.rows, theirs).select(order)
    return data.selected(replace(rows, repeat=repeat), JoinedReader(data.reader, gold.reader))
