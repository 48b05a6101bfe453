"""Registered matrices that no compiled pass makes, for batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.batches.kernels import Nodes
from syntax.batches.segments import FlatExamples
from syntax.matrices import MATRICES, UNREACHABLE, MatrixBuffers
from syntax.matrices.forest import Forest

Columns = Mapping[str, Callable[[], NDArray[Any]]]
"""Columns of all M nodes that matrices may read, by the names of `syntax.matrices.COLUMNS`."""


def node_columns(examples: FlatExamples, nodes: Nodes) -> Columns:
    columns: dict[str, Callable[[], NDArray[Any]]] = {
        "column": lambda: nodes.column,
        "special": lambda: nodes.piece < 0,
        "upos": lambda: _of_pieces(examples.upos, nodes),
    }
    marks = examples.marks
    return columns if marks is None else {**columns, "marks": lambda: _of_pieces(marks, nodes)}


def _of_pieces(values: NDArray[Any], nodes: Nodes) -> NDArray[Any]:
    return np.append(values, values.dtype.type(0))[np.where(nodes.piece < 0, -1, nodes.piece)]


def derive(
    name: str, forest: Forest, columns: Columns, width: int, buffers: MatrixBuffers
) -> NDArray[Any]:
    """One matrix of every whole sequence, less the rows and columns of deleted nodes, padded."""
    shown = list(_shown(name, forest, columns))
    empty = MATRICES[name](np.empty(0, np.int32))
    dtype = np.result_type(empty, *shown)
    batch = buffers.take(name, (len(shown), *(width,) * empty.ndim), dtype)
    distances = MATRICES.padding(name) == UNREACHABLE
    batch[:] = np.iinfo(dtype).max if distances else MATRICES.padding(name)
    for row, matrix in zip(batch, shown, strict=True):
        inside = row[tuple(slice(size) for size in matrix.shape)]
        inside[:] = matrix
        if distances and matrix.dtype != dtype:
            inside[matrix == np.iinfo(matrix.dtype).max] = np.iinfo(dtype).max
    return batch


def _shown(name: str, forest: Forest, columns: Columns) -> Iterator[NDArray[Any]]:
    trees, make, reads = forest.trees, MATRICES[name], MATRICES.columns(name)
    read = {column: columns[column]() for column in reads if column in columns}
    for first, end in pairwise(trees.offsets.tolist()):
        source = trees.source[first:end] - first
        own = {column: values[first:end] for column, values in read.items()}
        if "source" in reads:
            own["source"] = source
        whole = make(np.maximum(trees.parents[first:end] - first, -1), **own)
        kept = source[trees.column[first:end] >= 0]
        everything = np.array_equal(kept, np.arange(end - first))
        yield whole if everything else whole[np.ix_(*(kept,) * whole.ndim)]
