"""Chosen examples of a dataset, decoded a pool at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from featurestore.dataset import FeatureDataset
from featurestore.encode.columns import binary_numbers, list_parts, one_array
from featurestore.tables.schema import MATRIX_BLOBS, VECTORS
from syntax.assembly import FlatExamples
from syntax.examples import LabelSpec

_VECTORS: Final = tuple(name for name in VECTORS if name != "offsets")
NO_LABEL: Final = -1
"""Id of a missing class label."""

Labels = NDArray[np.int64] | NDArray[np.float32] | list[Any]


class WindowReader(Protocol):
    """Reads examples by their positions in sequence order."""

    def read(self, examples: NDArray[np.int64]) -> Window:
        """The examples, in the order asked."""
        ...


class ExampleReader:
    """Reads examples of a dataset by their positions in sequence order.

    Args:
        data: The dataset.
        stored: Read the stored matrices too.
        offsets: Read the characters that pieces cover, too.
    """

    def __init__(self, data: FeatureDataset, stored: bool = False, offsets: bool = False) -> None:
        self._data = data
        labels = [label.name for label in data.labels]
        further = (*(MATRIX_BLOBS if stored else ()), *(("offsets",) if offsets else ()))
        self._columns = ["example_id", "segment_lengths", *_VECTORS, *further, *labels]

    def read(self, examples: NDArray[np.int64]) -> Window:
        """The examples, in the order asked."""
        table = self._data.columns(self._columns, examples)
        return Window.of(table, self._data.labels)


@dataclass(frozen=True)
class Window:
    """Decoded examples, of which batches are consecutive slices.

    Attributes:
        example_ids: Names of the examples.
        examples: Their vectors.
        labels: Their labels by column.
        blobs: Their stored matrices, by column, one list of blobs per example; empty unless read.
    """

    example_ids: list[str]
    examples: FlatExamples
    labels: dict[str, Labels]
    blobs: dict[str, list[list[bytes] | None]]

    @classmethod
    def of(cls, table: pa.Table, labels: Sequence[LabelSpec]) -> Window:
        """Decode table rows."""
        example_offsets, lengths = list_parts(table["segment_lengths"])
        sizes = lengths.to_numpy()
        segment_offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        names = [name for name in VECTORS if name in table.schema.names]
        vectors = {name: binary_numbers(table[name], VECTORS[name]) for name in names}
        return cls(
            example_ids=table["example_id"].to_pylist(),
            examples=FlatExamples(
                **vectors, segment_offsets=segment_offsets, example_offsets=example_offsets
            ),
            labels={label.name: decode_label(table[label.name], label) for label in labels},
            blobs={
                name: table[name].to_pylist() for name in MATRIX_BLOBS if name in table.schema.names
            },
        )

    def batch(self, start: int, end: int) -> Window:
        """Examples ``start`` to ``end``; their arrays are views."""
        return Window(
            example_ids=self.example_ids[start:end],
            examples=slice_examples(self.examples, start, end),
            labels={name: values[start:end] for name, values in self.labels.items()},
            blobs={name: values[start:end] for name, values in self.blobs.items()},
        )


def slice_examples(flat: FlatExamples, start: int, end: int) -> FlatExamples:
    """Some consecutive examples, as views."""
    first, last = flat.example_offsets[start], flat.example_offsets[end]
    a, z = flat.segment_offsets[first], flat.segment_offsets[last]
    return FlatExamples(
        **{name: column[a:z] for name, column in flat.columns.items()},
        segment_offsets=flat.segment_offsets[first : last + 1] - a,
        example_offsets=flat.example_offsets[start : end + 1] - first,
    )


def decode_label(column: pa.ChunkedArray, label: LabelSpec) -> Labels:
    """A label column as arrays.

    Classes become ids (int64) in the order of ``label.names``, `NO_LABEL` where there is none;
    floats float32 with NaN where there is none; strings a list.
    """
    array = one_array(column)
    if label.kind == "class":
        ids = pc.index_in(array, value_set=pa.array(label.names, pa.string()))
        return np.asarray(ids.fill_null(NO_LABEL)).astype(np.int64)
    if label.kind == "float":
        return np.asarray(array.fill_null(float("nan"))).astype(np.float32)
    return list(array.to_pylist())
