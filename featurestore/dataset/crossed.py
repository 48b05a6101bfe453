"""Pairs across languages: some fields from one dataset, the others from its translation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.dataset.base import StreamedDataset
from featurestore.dataset.dataset import FeatureDataset
from featurestore.stream.window import Window, WindowReader
from featurestore.tables.encode.columns import arrow_of, list_parts, numpy_of
from syntax.batches import FlatExamples
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.labels import field_of, is_local
from syntax.options import checked
from syntax.registry import unknown_name

Differing = Literal["refuse", "leave_out"]


class CrossedDataset(StreamedDataset):
    """Examples of one dataset, with some of their fields from another, such as a translation.

    Examples are joined by their ids, never by position; those without a partner are left out and
    counted. Labels are those of both; tags and spans, which differ between translations, those of
    the dataset that their field comes from.

    Args:
        second: Another language or parser of the same dataset.
        fields: Names of the second's fields, such as ``["hypothesis"]``.
        differing: ``refuse`` examples that have one label here and another there, tags and spans
            excepted, with an error, or ``leave_out`` these.

    Attributes:
        unmatched: Ids of the first dataset's examples that the second does not have.
        differing: Ids of the examples that were left out for their labels.

    Example:
        >>> english = store.dataset("xnli", split="test", lang="en")       # doctest: +SKIP
        >>> german = store.dataset("xnli", split="test", lang="de")        # doctest: +SKIP
        >>> CrossedDataset(english, german, ["hypothesis"]).stream()       # doctest: +SKIP
    """

    def __init__(
        self,
        first: FeatureDataset,
        second: FeatureDataset,
        fields: Collection[str],
        differing: Differing = "refuse",
    ) -> None:
        _check_same(first, second)
        checked("differing", Differing, differing)
        crossed = checked("fields", tuple[str, ...], fields)
        for name in crossed:
            if name not in first.card.fields:
                raise unknown_name(f"field of {first.name!r}", name, first.card.fields)
        self._first, self._second = first, second
        self._from_second = np.array([field in crossed for field in first.card.fields])
        ids, partners = _columns(first), _columns(second)
        ours = _places(ids, "first")
        theirs = _places(partners, "second")
        found = np.array([theirs.get(name, -1) for name in ours], np.int64)
        matched, partner = found >= 0, found[found >= 0]
        chosen, own = np.flatnonzero(matched), np.array(list(ours), object)
        if len(own) and not len(chosen):
            raise SpecError(
                f"no example of {first.name!r} in {_langs(first)} has a partner in "
                f"{_langs(second)}, by example_id; name two that are translations of each other"
            )
        self.unmatched: tuple[str, ...] = tuple(own[~matched].tolist())
        equal = _equal_labels(first, ids, partners, chosen, partner, differing == "refuse")
        self.differing: tuple[str, ...] = tuple(own[chosen[~equal]].tolist())
        self._chosen, self._partner = chosen[equal], partner[equal]
        self.name, self.version, self.card = first.name, first.version, first.card
        pieces = np.where(
            self._from_second,
            _lengths(partners, len(self._from_second))[self._partner],
            _lengths(ids, len(self._from_second))[self._chosen],
        )
        self.rows = replace(first.rows.select(self._chosen), pieces=pieces.sum(axis=1))

    @cached_property
    def fingerprints(self) -> dict[str, Any]:
        sides = (self._first.rows.keys[self._chosen], self._second.rows.keys[self._partner])
        content = hashlib.blake2b(self._from_second.tobytes(), digest_size=16)
        for keys in sides:
            content.update(keys.astype(">u8").tobytes())
        return {
            "tokenizer": self.card.tokenizer_fingerprint,
            "parsers": sorted({*self._first.parsers, *self._second.parsers}),
            "examples": content.hexdigest(),
        }

    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> CrossedReader:
        first = self._first.open_reader(stored, offsets, tokens)
        second = self._second.open_reader(stored, offsets, tokens)
        crossed = {
            label.name
            for label in filter(is_local, self.labels)
            if self._from_second[field_of(label, self.card.fields)]
        }
        return CrossedReader(first, second, self._chosen, self._partner, self._from_second, crossed)

    def renew_lease(self) -> None:
        self._first.renew_lease()
        self._second.renew_lease()


class CrossedReader:
    """Reads both sides, at the positions ``chosen`` and ``partner``, and joins them."""

    def __init__(
        self,
        first: WindowReader,
        second: WindowReader,
        chosen: NDArray[np.int64],
        partner: NDArray[np.int64],
        from_second: NDArray[np.bool_],
        crossed: Collection[str] = (),
    ) -> None:
        self._first, self._second = first, second
        self._chosen, self._partner = chosen, partner
        self._from_second, self._labels = from_second, frozenset(crossed)

    def fetch(self, examples: NDArray[np.int64], is_wanted: Callable[[], bool]) -> None:
        self._first.fetch(self._chosen[examples], is_wanted)
        self._second.fetch(self._partner[examples], is_wanted)

    def read(self, examples: NDArray[np.int64]) -> Window:
        ours = self._first.read(self._chosen[examples])
        theirs = self._second.read(self._partner[examples])
        blobs = {
            name: [self._crossed(*pair) for pair in zip(lists, theirs.blobs[name], strict=True)]
            for name, lists in ours.blobs.items()
        }
        both = FlatExamples.joined((ours.examples, theirs.examples))
        fields = np.arange(len(self._from_second))
        starts = both.example_offsets[:-1].reshape(2, -1, 1) + fields
        counts = None
        if ours.token_counts is not None and theirs.token_counts is not None:
            counts = np.where(self._from_second, theirs.token_counts, ours.token_counts)
        return replace(
            ours,
            examples=both.with_segments(np.where(self._from_second, starts[1], starts[0])),
            labels={**ours.labels, **{name: theirs.labels[name] for name in self._labels}},
            blobs=blobs,
            token_counts=counts,
        )

    def _crossed(self, ours: list[bytes] | None, theirs: list[bytes] | None) -> list[bytes] | None:
        if ours is None or theirs is None:
            return None
        pairs = zip(self._from_second.tolist(), ours, theirs, strict=True)
        return [second if crossed else first for crossed, first, second in pairs]


def _langs(data: FeatureDataset) -> str:
    return ", ".join(data.langs) or "no language"


def _check_same(first: FeatureDataset, second: FeatureDataset) -> None:
    for what, ours, theirs in (
        ("fields", first.card.fields, second.card.fields),
        ("labels", first.labels, second.labels),
        ("tokenizer", first.card.tokenizer_fingerprint, second.card.tokenizer_fingerprint),
    ):
        if ours != theirs:
            raise SpecError(f"{first.name} has the {what} {ours}, {second.name} has {theirs}")


def _columns(data: FeatureDataset) -> pa.Table:
    columns = ["example_id", "segment_lengths", *(label.name for label in _common(data))]
    return data.columns(columns)


def _common(data: FeatureDataset) -> list[LabelSpec]:
    """All labels but those of tokens or characters, which differ between languages."""
    return [label for label in data.labels if not is_local(label)]


def _places(table: pa.Table, which: str) -> dict[str, int]:
    ids = table["example_id"].to_pylist()
    places = {name: at for at, name in enumerate(ids)}
    if len(places) < len(ids):
        twice = next(name for at, name in enumerate(ids) if places[name] != at)
        raise SpecError(
            f"the {which} dataset has several examples with the id {twice!r}; choose one language "
            "and parser"
        )
    return places


def _equal_labels(
    first: FeatureDataset,
    ids: pa.Table,
    partners: pa.Table,
    chosen: NDArray[np.int64],
    partner: NDArray[np.int64],
    refuse: bool,
) -> NDArray[np.bool_]:
    """Mask of the pairs with the same labels. *Shape:* (N,)."""
    equal = np.ones(len(chosen), bool)
    for label in _common(first):
        ours = ids[label.name].take(arrow_of(chosen)).to_pylist()
        theirs = partners[label.name].take(arrow_of(partner)).to_pylist()
        for at, pair in enumerate(zip(ours, theirs, strict=True)):
            equal[at] &= pair[0] == pair[1]
            if refuse and not equal[at]:
                name = ids["example_id"][int(chosen[at])].as_py()
                raise SpecError(
                    f"example {name!r} has the {label.name} {pair[0]!r} in one dataset and "
                    f"{pair[1]!r} in the other; are they translations of each other?",
                    example_id=name,
                )
    return equal


def _lengths(table: pa.Table, fields: int) -> NDArray[np.int64]:
    """Pieces of each segment. *Shape:* (N, fields)."""
    _, values = list_parts(table["segment_lengths"])
    return numpy_of(values).astype(np.int64).reshape(-1, fields)
