"""Decoded examples, a pool at a time, and what streams need of the datasets they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
from featurestore.tables.encode.columns import binary_numbers, list_parts
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
        """What a run should record; ``examples`` is the fingerprint of the content."""
        ...

    @property
    def special_tokens(self) -> SpecialTokens:
        """Special tokens to put around the segments."""
        ...

    def __len__(self) -> int: ...

    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> WindowReader:
        """A reader of examples by their positions.

        Args:
            stored: Read the stored matrices too.
            offsets: Read the characters that pieces cover, too.
            tokens: Read the dataset's own tokens, too; only with ``offsets``.
        """
        ...

    def renew_lease(self) -> None:
        """Keep the files that are read from a vacuum; called before each batch."""
        ...


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
        examples: Their vectors.
        labels: Their labels by column.
        blobs: Their stored matrices, by column, one list of blobs per example; empty unless read.
        token_counts: Tokens of their segments, where they were read. *Shape:* (B, fields), int32.
    """

    example_ids: list[str]
    examples: FlatExamples
    labels: dict[str, Labels]
    blobs: dict[str, list[list[bytes] | None]]
    token_counts: NDArray[np.int32] | None = None

    @classmethod
    def of(
        cls, table: pa.Table, position: NDArray[np.int64], labels: Sequence[LabelSpec]
    ) -> Window:
        """Decode table rows.

        Args:
            table: The rows.
            position: The row of each example. *Shape:* (B,).
            labels: The label columns.
        """
        others = [name for name in table.schema.names if name not in VECTORS]
        rows = table.select(others).combine_chunks().take(pa.array(position))
        tokens = None
        if "token_counts" in others:
            tokens = decode_token_counts(rows)
            tokens = tokens.reshape(rows.num_rows, len(tokens) // max(1, rows.num_rows))
        return cls(
            example_ids=rows["example_id"].to_pylist(),
            examples=_decode_vectors(table).take(position),
            labels={label.name: decode_label(rows[label.name], label) for label in labels},
            blobs={name: rows[name].to_pylist() for name in MATRIX_BLOBS if name in others},
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
        """Values of examples in batches, by their names there."""
        counts = {} if self.token_counts is None else {"token_counts": self.token_counts}
        return {"example_id": self.example_ids, **counts, **self.labels}


def _decode_vectors(table: pa.Table) -> FlatExamples:
    """The vectors of all rows, in their order."""
    example_offsets, lengths = list_parts(table["segment_lengths"])
    segment_offsets = offsets_of(lengths.to_numpy())
    names = [name for name in VECTORS if name in table.schema.names]
    vectors = {name: binary_numbers(table[name], VECTORS[name]) for name in names}
    if "token_counts" in table.schema.names:
        vectors["token_ids"] = decode_token_ids(table, vectors["offsets"], segment_offsets)
    return FlatExamples(**vectors, segment_offsets=segment_offsets, example_offsets=example_offsets)
