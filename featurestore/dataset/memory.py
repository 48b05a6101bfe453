"""A dataset of examples that no store holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.dataset.dataset import ExampleReader, FeatureDataset
from featurestore.records import DatasetHandle, Drop, ExampleRow, key_bytes
from featurestore.stream.window import Window
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.files import FileReader
from featurestore.tables.index import keys_of
from featurestore.tables.rows import RowIndex
from syntax.examples import DatasetSpec

_TABLE: Final = "memory"
"""Stands for the path of a file."""


class MemoryDataset(FeatureDataset):
    """Examples in memory.

    They are encoded and decoded as stored ones are, so a stream over them gives the same arrays,
    bit by bit, as over a stored split of the same examples.

    Args:
        rows: The examples, in sequence order.
        parsers: Descriptions of the parsers, by fingerprint.
    """

    def __init__(
        self,
        handle: DatasetHandle,
        rows: Sequence[ExampleRow],
        parsers: Mapping[str, dict[str, Any]],
    ) -> None:
        spec, self.card = handle.spec, DatasetCard.of(handle)
        self.name, self.version = self.card.name, 0
        table = encode_examples(self.card, spec.split, spec.lang, rows, matrices=False)
        self.rows, self.reader = _index(spec, rows), _TableReader(table)
        self._spec, self._described = spec, parsers
        self._carried: Mapping[str, Sequence[Any]] = {}
        self._facts: Mapping[str, str] = {}

    def carrying(self, facts: Mapping[str, str], **columns: Sequence[Any]) -> MemoryDataset:
        """The dataset with values per example, for batches; ``facts`` go into `fingerprints`."""
        carried = {**self._carried, **columns}
        return self._changed(_carried=carried, _facts={**self._facts, **facts})

    @cached_property
    def parsers(self) -> dict[str, dict[str, Any]]:
        used = (self.rows.parsers[index] for index in np.flatnonzero(self.rows.counts.any(axis=0)))
        return {parser: self._described.get(parser, {}) for parser in used}

    @cached_property
    def fingerprints(self) -> dict[str, Any]:
        return {**super().fingerprints, **self._facts}

    @cached_property
    def spec(self) -> DatasetSpec:
        return self._spec

    @cached_property
    def reports(self) -> list[dict[str, Any]]:
        return []

    def drops(self) -> list[Drop]:
        """Empty: the caller that made the examples knows which ones failed."""
        return []

    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> ExampleReader:
        return _CarryingReader(self, self._carried, stored, offsets, tokens)

    def _selected(self, rows: RowIndex) -> MemoryDataset:
        return self._changed(rows=rows)

    def _changed(self, **changes: Any) -> MemoryDataset:
        changed = object.__new__(MemoryDataset)
        derived = ("fingerprints", "parsers", "report", "reports", "spec")
        kept = {name: value for name, value in vars(self).items() if name not in derived}
        vars(changed).update({**kept, **changes})
        return changed


class _TableReader(FileReader):
    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __reduce__(self) -> tuple[type[_TableReader], tuple[Any, ...]]:
        return _TableReader, (self._table,)

    def columns(self, path: str, columns: Sequence[str]) -> pa.Table:  # noqa: ARG002
        return self._table.select(list(columns))

    def holding(
        self, path: str, rows: NDArray[np.integer], columns: Sequence[str]
    ) -> tuple[pa.Table, NDArray[np.integer]]:
        return self.columns(path, columns), rows

    def fetch(self, paths: Iterable[str], is_wanted: Callable[[], bool] = lambda: True) -> None: ...

    def renew_lease(self) -> None: ...


class _CarryingReader(ExampleReader):
    def __init__(
        self, data: MemoryDataset, columns: Mapping[str, Sequence[Any]], *options: bool
    ) -> None:
        super().__init__(data, *options)
        self._carried, self._at = columns, data.rows.row

    def read(self, examples: NDArray[np.int64]) -> Window:
        window = super().read(examples)
        rows = self._at[examples].tolist()
        carried = {name: [values[row] for row in rows] for name, values in self._carried.items()}
        return replace(window, labels={**window.labels, **carried})


def _index(spec: DatasetSpec, rows: Sequence[ExampleRow]) -> RowIndex:
    names = np.asarray([row.parser for row in rows], dtype=object).astype(str)
    parsers, parser = np.unique(names, return_inverse=True)
    pieces = [sum(map(len, row.segments)) for row in rows]
    return RowIndex(
        paths=(_TABLE,),
        file=np.zeros(len(rows), np.int32),
        row=np.arange(len(rows), dtype=np.int32),
        pieces=np.asarray(pieces, np.int64),
        part=np.zeros(len(rows), np.int32),
        parts=((spec.split, spec.lang),),
        parser=parser.astype(np.int32),
        parsers=tuple(parsers.tolist()),
        keys=keys_of(key_bytes([row.example_key for row in rows])),
    )
