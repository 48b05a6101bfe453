"""A dataset pinned at a version: its length, its report, its streams."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.dataset.base import StreamedDataset
from featurestore.dataset.filters import (
    Wanted,
    in_langs,
    of_length,
    with_any_label,
    with_labels,
    within_limit,
)
from featurestore.dataset.parsers import of_parsers
from featurestore.records import Drop, key_bytes
from featurestore.stream.window import StoredRows, Window, WindowReader
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.columns import arrow_of, empty_table
from featurestore.tables.files import FileReader
from featurestore.tables.index import KeyIndex, keys_of
from featurestore.tables.pins import Lease, Pin
from featurestore.tables.rows import RowIndex, open_row_index
from featurestore.tables.schema import MATRIX_BLOBS, TOKENS, VECTORS
from featurestore.tables.snapshot import DataFile, in_partition
from syntax.errors import SpecError, UnknownDatasetError
from syntax.examples import DatasetSpec
from syntax.lists import ParserChoice, listed
from syntax.registry import unknown_name

if TYPE_CHECKING:
    from featurestore.store import FeatureStore

EVERY: Final = "*"
"""Stands for all splits, one after the other, or for all languages."""

_VECTORS: Final = tuple(name for name in VECTORS if name != "offsets")


class FeatureDataset(StreamedDataset):
    """The examples of one dataset version, split and choice of languages and parser."""

    def __init__(
        self,
        store: FeatureStore,
        card: DatasetCard,
        version: int,
        rows: RowIndex,
        reader: FileReader,
    ) -> None:
        self._store = store
        self.name = card.name
        self.card = card
        self.version = version
        self.rows = rows
        self.reader = reader

    def pin(self, name: str, by: str = "") -> None:
        """Keep this version: ``store.dataset(..., version=name)`` reads it from then on."""
        self._store.pins.add(Pin(name, self.card.path, self.version, by))

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Split and language of each partition that has examples."""
        return tuple(self.rows.parts[part] for part in np.flatnonzero(self.rows.counts.any(axis=1)))

    @cached_property
    def parsers(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the parsers of the examples, by fingerprint; empty without one."""
        known = self._store.fingerprints.all("parser")
        used = (self.rows.parsers[index] for index in np.flatnonzero(self.rows.counts.any(axis=0)))
        return {parser: known.get(parser, {}) for parser in used}

    @cached_property
    def fingerprints(self) -> dict[str, Any]:
        """Content for a run to record beside the version: tokenizer, parsers and examples."""
        return {
            "tokenizer": self.card.tokenizer_fingerprint,
            "parsers": sorted(self.parsers),
            "examples": self.rows.content,
        }

    @cached_property
    def spec(self) -> DatasetSpec:
        """Fields and labels, and the origin and terms of the partitions that are read.

        Several languages give ``lang="*"``, several splits ``split="*"``; sources and licences
        are joined by ``"; "``. The mode is that of the first part.
        """
        wanted = {"name": self.name, "tokenizer": self.card.tokenizer_fingerprint}
        described = self._store.fingerprints.all("split").values()
        origins = [
            origin
            for split, lang in self.parts
            for origin in described
            if {**wanted, "split": split, "lang": lang}.items() <= origin.items()
        ]
        return DatasetSpec(
            name=self.name,
            split=_only([split for split, _ in self.parts]),
            lang=_only([lang for _, lang in self.parts]),
            fields=self.card.fields,
            labels=self.card.labels,
            mode=origins[0].get("mode", "raw") if origins else "raw",
            source=_joined([origin.get("source", "") for origin in origins]),
            licence=_joined([origin.get("licence", "") for origin in origins]),
        )

    @cached_property
    def report(self) -> dict[str, int]:
        """Number of examples that are missing here, by reason."""
        return dict(Counter(drop.reason for drop in self.drops()).most_common())

    @cached_property
    def reports(self) -> list[dict[str, Any]]:
        """The accounts of the jobs that had ended by this version, in the order of their versions.

        Each says what became of the job's ``examples``: ``stored``, ``already_stored``, and
        ``dropped`` by reason; the ``parsed`` and ``reused`` texts; and which job, parser, split
        and language it was.
        """
        wanted = {"dataset": self.name, "tokenizer": self.card.tokenizer_fingerprint}
        reports = [
            report
            for report in self._store.fingerprints.all("report").values()
            if wanted.items() <= report.items()
            and (report["split"], report["lang"]) in self.parts
            and (report["version"] or 0) <= self.version
        ]
        return sorted(reports, key=lambda report: report["version"] or 0)

    def drops(self) -> list[Drop]:
        """The latest drop of each example that is missing here and was not stored later."""
        table, tokenizer = self._store.drops, self.card.tokenizer_fingerprint
        drops = [drop for part in self.parts for drop in table.of(self.name, tokenizer, *part)]
        latest = {(drop.split, drop.lang, drop.example_id): drop for drop in drops}
        last = list(latest.values())
        index = KeyIndex()
        index.add(self.rows.keys, 0)
        keyed = [drop for drop in last if drop.example_key]
        found = index.find(keys_of(key_bytes([drop.example_key for drop in keyed]))).found
        stored = {drop.example_key for drop, here in zip(keyed, found, strict=True) if here}
        return [drop for drop in last if drop.example_key not in stored]

    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> WindowReader:
        return ExampleReader(self, stored, offsets, tokens)

    def renew_lease(self) -> None:
        self.reader.renew_lease()

    def fetch(
        self, examples: NDArray[np.int64], is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Copy files of examples to this machine, where the store keeps copies, while wanted."""
        files = np.unique(self.rows.file[examples]).tolist()
        self.reader.fetch([self.rows.paths[file] for file in files], is_wanted)

    def columns(self, names: Sequence[str], examples: NDArray[np.int64] | None = None) -> pa.Table:
        """Columns of examples, by positions in sequence order, as they are stored."""
        table, position = self.stored(names, examples)
        return table.combine_chunks().take(arrow_of(position))

    def stored(
        self, names: Sequence[str], examples: NDArray[np.int64] | None = None
    ) -> tuple[pa.Table, NDArray[np.int64]]:
        """Like `columns`, but in file order and among other rows, with the row of each example."""
        count = len(self) if examples is None else len(examples)
        tables, position, before = [], np.empty(count, np.int64), 0
        for table, found, part in self.stored_files(names, examples):
            tables.append(table)
            position[part] = found + before
            before += len(table)
        return pa.concat_tables(tables), position

    def stored_files(
        self, names: Sequence[str], examples: NDArray[np.int64] | None = None
    ) -> Iterator[StoredRows]:
        """As `stored`, one file after the other, after a table without rows."""
        wanted = slice(None) if examples is None else examples
        file, row = self.rows.file[wanted], self.rows.row[wanted]
        order = np.lexsort((row, file))
        files, starts = np.unique(file[order], return_index=True)
        none = np.empty(0, np.int64)
        yield empty_table(self.card.layout().schema).select(names), none, none
        for number, part in zip(files.tolist(), np.split(order, starts[1:]), strict=False):
            yield (*self._holding(self.rows.paths[number], row[part], names), part)
            pa.default_memory_pool().release_unused()  # else Arrow keeps what a file took

    def _holding(
        self, path: str, rows: NDArray[np.int32], names: Sequence[str]
    ) -> tuple[pa.Table, NDArray[np.integer]]:
        """Rows of a file, with others that were read with them if these are not more."""
        table, position = self.reader.holding(path, rows, names)
        if 2 * len(rows) >= len(table):
            return table, position
        return table.take(arrow_of(position)), np.arange(len(rows))

    def where(
        self,
        langs: Collection[str] | None = None,
        shortest: int = 0,
        longest: int | None = None,
        labels: Wanted | None = None,
        labelled: Collection[str] = (),
        limit: int | None = None,
    ) -> FeatureDataset:
        """Some of the examples, as a dataset.

        Args:
            langs: Only these languages; each must have examples here. None of them for ``[]``.
            shortest: Smallest number of stored pieces of an example, over all segments.
            longest: Largest number of these.
            labels: For label columns, the wanted values; ``None`` among them takes examples
                without one: ``{"label": ["entailment", None]}``. Of tags and spans, an example
                that has any of the names is taken, and with ``None`` one that has no tag or span.
            labelled: Only examples that have a label in each of these columns. An empty list of
                spans is one: that there is none.
            limit: At most so many of each language, of those that the others choose: the first by
                their keys. That is a choice by chance, the same everywhere, and part of that of a
                larger limit.
        """
        chosen = of_length(self.rows, shortest, longest)
        if langs is not None:
            chosen &= in_langs(self.rows, langs)
        if labels:
            chosen &= with_labels(self.rows, self.reader, self.labels, labels)
        if labelled:
            chosen &= with_any_label(self.rows, self.reader, self.labels, labelled)
        if limit is not None:
            chosen = within_limit(self.rows, chosen, limit)
        return self._selected(self.rows.select(chosen))

    def _selected(self, rows: RowIndex) -> FeatureDataset:
        return self.selected(rows, self.reader)

    def selected(self, rows: RowIndex, reader: FileReader) -> FeatureDataset:
        return FeatureDataset(self._store, self.card, self.version, rows, reader)


class ExampleReader:
    """Reads examples of a dataset by their positions in sequence order."""

    def __init__(
        self,
        data: FeatureDataset,
        stored: bool = False,
        offsets: bool = False,
        tokens: bool = False,
    ) -> None:
        self._data = data
        labels = [label.name for label in data.labels]
        further = (
            *(MATRIX_BLOBS if stored else ()),
            *(("offsets",) if offsets else ()),
            *(TOKENS if tokens else ()),
        )
        self._columns = ["example_id", "segment_lengths", *_VECTORS, *further, *labels]

    def fetch(self, examples: NDArray[np.int64], is_wanted: Callable[[], bool]) -> None:
        self._data.fetch(examples, is_wanted)

    def read(self, examples: NDArray[np.int64]) -> Window:
        self._data.fetch(examples)
        files = self._data.stored_files(self._columns, examples)
        window = Window.of(files, len(examples), self._data.labels)
        if self._data.rows.repeat is None:
            return window
        repeats = self._data.rows.repeat[examples].tolist()
        # What is drawn for an example goes by its name, and is to be drawn anew.
        names = [
            f"{name} (repeated {times})" if times else name
            for name, times in zip(window.example_ids, repeats, strict=True)
        ]
        return replace(window, example_ids=names)


def open_dataset(
    store: FeatureStore,
    name: str,
    tokenizer: str | None,
    split: str | None,
    lang: str | Collection[str] | None,
    version: int | str | None,
    parser: str | Collection[str] | None,
) -> FeatureDataset:
    choice, langs = ParserChoice.read(parser), listed(lang)
    if lang is not None and not langs:
        raise SpecError(f"`lang={lang!r}` names no language; None reads all of them")
    card, table = store.features.find(name, tokenizer)
    snapshot = table.snapshot(version_number(store, card, version))
    files = _chosen_files(name, snapshot.files, split, None)
    if EVERY in langs:
        langs = tuple(sorted({file.partition["lang"] for file in files}))
    if langs:
        wanted = dict.fromkeys(langs)
        files = [file for one in wanted for file in _chosen_files(name, snapshot.files, split, one)]
    splits = sorted({file.partition["split"] for file in files})
    if len(splits) > 1 and split != EVERY:
        raise SpecError(
            f"dataset {name!r} has the splits {', '.join(splits)}; choose one, such as "
            f"`split={splits[0]}`",
            splits=splits,
        )
    # The newest version was looked at just now; any other, at the first batch.
    looked = time.time() if version is None else 0.0
    paths = tuple(file.path for file in files)
    lease = Lease(store.root, card.path, snapshot.version, paths, looked)
    reader = FileReader(table.location, schema=table.layout.schema, lease=lease)
    known = store.fingerprints.all("parser")
    rows = of_parsers(
        open_row_index(table, reader, files), choice, known, f"dataset {name!r}", langs
    )
    return FeatureDataset(store, card, snapshot.version, rows, reader)


def version_number(store: FeatureStore, card: DatasetCard, version: int | str | None) -> int | None:
    """The number of a version that may be named by a pin."""
    if not isinstance(version, str):
        return version
    pin = store.pins.get(version)
    if pin.table != card.path:
        raise SpecError(
            f"the pin {version!r} is of {pin.table}, not of {card.path}; name that dataset",
            pin=version,
        )
    return pin.version


def _chosen_files(
    name: str, files: tuple[DataFile, ...], split: str | None, lang: str | None
) -> list[DataFile]:
    asked = (("split", None if split == EVERY else split), ("lang", lang))
    wanted = {key: value for key, value in asked if value is not None}
    chosen = in_partition(files, wanted)
    if not chosen:
        held = sorted({f"{file.partition['split']}/{file.partition['lang']}" for file in files})
        raise unknown_name(
            f"part of dataset {name!r}", f"{split or '*'}/{lang or '*'}", held, UnknownDatasetError
        )
    return chosen


def _only(values: list[str]) -> str:
    return values[0] if len(set(values)) == 1 else "*"


def _joined(values: list[str]) -> str:
    return "; ".join(dict.fromkeys(value for value in values if value))
