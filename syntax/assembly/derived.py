"""Registered matrices that no compiled pass makes, for batches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.matrices import MATRICES, MatrixBuffers
from syntax.matrices.forest import Forest


def derive(name: str, forest: Forest, width: int, buffers: MatrixBuffers) -> NDArray[Any]:
    """One matrix of every whole sequence, less the rows and columns of what was deleted.

    Returns:
        *Shape:* (B, width) or (B, width, width), as the matrix has axes; padded with 0.
    """
    bounds = pairwise(forest.trees.offsets.tolist())
    shown = [_of_sequence(name, forest, first, end) for first, end in bounds]
    empty = MATRICES[name](np.empty(0, np.int32))
    dtype = np.result_type(empty, *shown)
    batch = buffers.take(name, (len(shown), *(width,) * empty.ndim), dtype)
    batch[:] = 0
    for row, matrix in zip(batch, shown, strict=True):
        row[tuple(slice(size) for size in matrix.shape)] = matrix
    return batch


def _of_sequence(name: str, forest: Forest, first: int, end: int) -> NDArray[Any]:
    trees = forest.trees
    whole = MATRICES[name](np.maximum(trees.parents[first:end] - first, -1))
    kept = trees.source[first:end][trees.column[first:end] >= 0] - first
    return whole[np.ix_(*(kept,) * whole.ndim)]
