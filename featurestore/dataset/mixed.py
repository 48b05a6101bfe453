"""A dataset with examples of another, or with examples of small languages repeated."""

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


def with_repeated(data: FeatureDataset, gold: FeatureDataset, every: int | None) -> FeatureDataset:
    """The examples of ``data``, with one of ``gold`` after each ``every`` of them.

    Those of ``gold`` are taken in turn, from the first again after the last; without ``every`` each
    comes once, behind the others. Streams shuffle all of them together. An example that comes again
    has another ``example_id`` in batches, so that samplers draw anew.
    """
    for what in ("tokenizer_fingerprint", "fields", "labels"):
        ours, theirs = getattr(data.card, what), getattr(gold.card, what)
        if ours != theirs:
            raise SpecError(f"{data.name} has the {what} {ours}, {gold.name} has {theirs}")
    if not len(gold):
        raise SpecError(f"{gold.name} has no examples to repeat; its drops say why")
    theirs = replace(gold.rows, paths=tuple(_OF_SECOND + path for path in gold.rows.paths))
    rows = RowIndex.joined(data.rows, theirs)
    reader = JoinedReader(data.reader, gold.reader)
    if every is None:
        return data.selected(rows, reader)
    places = len(data) // every
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
    return data.selected(replace(rows.select(order), repeat=repeat), reader)


def with_weighted_languages(data: FeatureDataset, exponent: float) -> FeatureDataset:
    """The examples, those of smaller languages repeated: language i has p_i in proportion to q_i^a.

    q_i is its share of the examples, a the exponent: 1 repeats none, 0 gives all languages the same
    number. The largest language has each example once, so none is left out. Examples of a language
    are taken in turn, all again after the last.
    """
    langs = sorted(data.langs)
    of_part = np.array([langs.index(lang) for _, lang in data.rows.parts])
    lang_N = of_part[data.rows.part]
    own_K = np.bincount(lang_N, minlength=len(langs))
    wanted_K = np.rint(own_K**exponent * own_K.max() ** (1 - exponent)).astype(np.int64)
    place_N = np.zeros(len(data), np.int64)
    for lang in range(len(langs)):
        place_N[lang_N == lang] = np.arange(own_K[lang])
    whole_N, further_N = wanted_K[lang_N] // own_K[lang_N], wanted_K[lang_N] % own_K[lang_N]
    times_N = whole_N + (place_N < further_N)
    example_M = np.repeat(np.arange(len(data)), times_N)
    turn_M = np.arange(len(example_M)) - np.repeat(np.cumsum(times_N) - times_N, times_N)
    order_M = np.argsort(turn_M, kind="stable")
    example_M, turn_M = example_M[order_M], turn_M[order_M]
    if (earlier_N := data.rows.repeat) is not None:
        turn_M = earlier_N[example_M] + turn_M * (earlier_N.max() + 1)
    rows = replace(data.rows.select(example_M), repeat=turn_M)
    return data.selected(rows, data.reader)
