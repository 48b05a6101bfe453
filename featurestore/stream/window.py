"""Decoded examples, a pool at a time, and the interface of datasets that are streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.stream.labels import (
    Labels,
    decode_label,
    decode_token_counts,
    decode_token_ids,
)
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.columns import arrow_of, binary_numbers, list_parts, numpy_of
from featurestore.tables.rows import RowIndex
from featurestore.tables.schema import MATRIX_BLOBS, VECTORS
from syntax.batches import FlatExamples, SpecialTokens
from syntax.examples import LabelSpec
from syntax.matrices.offsets import offsets_of


class Streamable(Protocol):
    """The part of a dataset that a stream needs: examples in sequence order, and their reader."""

    name: str
    version: int
    card: DatasetCard
    rows: RowIndex

    @property
    def fingerprints(self) -> dict[str, Any]:
        """Content for a run to record; ``examples`` is the fingerprint of the content."""
        ...

    @property
    def special_tokens(self) -> SpecialTokens: ...

    def __len__(self) -> int: ...

    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> WindowReader:
        """A reader of examples by their positions.

        ``stored`` adds the stored matrices, ``offsets`` the characters that pieces cover, and
        ``tokens``, which needs ``offsets``, the dataset's own tokens.
        """
        ...

    def renew_lease(self) -> None:
        """Keep the files that are read from a vacuum; called before each batch."""
        ...


StoredRows: TypeAlias = tuple[pa.Table, NDArray[np.integer[Any]], NDArray[np.integer[Any]]]
"""Rows of one file, those of them that are asked for, and the numbers of their examples."""


class WindowReader(Protocol):
    """Reads examples by their positions in sequence order."""

    def fetch(self, examples: NDArray[np.int64], is_wanted: Callable[[], bool]) -> None:
        """Bring the files of examples to this machine, where copies are kept, while wanted."""
        ...

    def read(self, examples: NDArray[np.int64]) -> Window:
        """The examples, in the requested order."""
        ...


@dataclass(frozen=True)
class Window:
    """Decoded examples, of which batches are consecutive slices.

    Attributes:
        blobs: Their stored matrices, by column, one list of blobs per example; empty unless read.
        token_counts: Tokens of their segments, where they were read. *Shape:* (B, fields), int32.
    """

    example_ids: list[str]
    examples: FlatExamples
    labels: dict[str, Labels]
    blobs: dict[str, list[list[bytes] | None]]
    token_counts: NDArray[np.int32] | None = None

    @classmethod
    def of(cls, files: Iterable[StoredRows], count: int, labels: Sequence[LabelSpec]) -> Window:
        """Decode rows of a dataset, file by file; no more than one vector is held twice."""
        tables, before = [], 0
        position = np.empty(count, np.int64)
        vectors: dict[str, list[NDArray[Any]]] = {}
        for table, found, part in files:
            position[part] = found + before
            before += len(table)
            names = table.schema.names
            tables.append(table.select([name for name in names if name not in VECTORS]))
            for name in names:
                if name in VECTORS:
                    numbers = binary_numbers(table[name], VECTORS[name])
                    vectors.setdefault(name, []).append(numbers)
        stored = pa.concat_tables(tables)
        del tables, table
        examples = _taken(stored, vectors, position)
        rows = stored.combine_chunks().take(arrow_of(position))
        del stored
        tokens = None
        if "token_counts" in rows.schema.names:
            tokens = decode_token_counts(rows)
            tokens = tokens.reshape(rows.num_rows, len(tokens) // max(1, rows.num_rows))
        return cls(
            example_ids=rows["example_id"].to_pylist(),
            examples=examples,
            labels={label.name: decode_label(rows[label.name], label) for label in labels},
            blobs={
                name: rows[name].to_pylist() for name in MATRIX_BLOBS if name in rows.schema.names
            },
            token_counts=tokens,
        )

    def batch(self, start: int, end: int) -> Window:
        """Examples ``start`` to ``end``; their arrays are views."""
        return Window(
            example_ids=self.example_ids[start:end],
            examples=self.examples.slice(start, end),
            labels={name: values[start:end] for name, values in self.labels.items()},
            blobs={name: values[start:end] for name, values in self.blobs.items()},
            token_counts=None if self.token_counts is None else self.token_counts[start:end],
        )

    @property
    def named(self) -> dict[str, Any]:
        counts = {} if self.token_counts is None else {"token_counts": self.token_counts}
        return {"example_id": self.example_ids, **counts, **self.labels}


def _taken(
    stored: pa.Table, vectors: dict[str, list[NDArray[Any]]], position: NDArray[np.int64]
) -> FlatExamples:
    """The vectors of examples in their order; ``vectors`` is emptied."""
    example_offsets, lengths = list_parts(stored["segment_lengths"])
    segment_offsets = offsets_of(numpy_of(lengths))

    def columns() -> Iterator[tuple[str, NDArray[Any]]]:
        if "token_counts" in stored.schema.names:
            offsets = np.concatenate(vectors["offsets"])
            yield "token_ids", decode_token_ids(stored, offsets, segment_offsets)
        for name in list(vectors):
            column = np.concatenate(vectors.pop(name))
            pa.default_memory_pool().release_unused()  # else Arrow keeps what the parts took
            yield name, column.reshape(-1, 2) if name == "offsets" else column

    return FlatExamples.taken(columns(), segment_offsets, example_offsets, position)
