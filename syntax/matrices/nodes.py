"""Checked nodes and columns, for the relations beyond distance and depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from syntax.errors import InputError
from syntax.matrices.forest import Forest
from syntax.matrices.heads import IntArray
from syntax.matrices.offsets import for_numba
from syntax.matrices.tree import one_forest

ScalarT = TypeVar("ScalarT", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Nodes:
    """L checked nodes of one tree or forest, with the source that each shows. (L,) each, int32."""

    parents: IntArray
    order: IntArray
    depth: IntArray
    root: IntArray
    source: IntArray

    @classmethod
    def of(cls, parents: ArrayLike, source: ArrayLike | None = None) -> Nodes:
        return cls.from_forest(one_forest(parents, source))

    @classmethod
    def from_forest(cls, forest: Forest) -> Nodes:
        trees = forest.trees
        return cls(trees.parents, trees.order, forest.depth, trees.root, trees.source)

    def __len__(self) -> int:
        return len(self.parents)

    def column(self, name: str, values: ArrayLike | None, dtype: DTypeLike) -> NDArray[Any]:
        """A column of the nodes, checked; zeros for ``None``. *Shape:* (L,)."""
        if values is None:
            return np.zeros(len(self), dtype)
        column = for_numba(values, dtype)
        if column.shape != (len(self),):
            raise InputError(
                f"{name} has shape {column.shape}; give one value for each of the {len(self)} nodes"
            )
        return column

    def kept_columns(self, column: ArrayLike | None) -> IntArray:
        """Column of each node; for a deleted node (-1), of its nearest kept ancestor; else -1."""
        if column is None:
            return np.arange(len(self), dtype=np.int32)
        shown = self.column("column", column, np.int32).copy()
        for node in self.order[shown[self.order] < 0].tolist():
            above = int(self.parents[node])
            shown[node] = shown[above] if above >= 0 else -1
        return shown

    def shown(self, vector: NDArray[ScalarT]) -> NDArray[ScalarT]:
        return vector[self.source]

    def shown_pairs(self, matrix: NDArray[ScalarT]) -> NDArray[ScalarT]:
        own = np.arange(len(self), dtype=np.int32)
        if np.array_equal(self.source, own):
            return matrix
        return matrix[np.ix_(self.source, self.source)]
