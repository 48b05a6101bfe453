"""The matrices by name: what requests, recipes and tables may ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from syntax.matrices.tree import ancestor_mask, tree_depth, tree_distance
from syntax.registry import Registry

Matrix = Callable[[ArrayLike], NDArray[Any]]
"""From the parents of a tree or forest (L,) to an array whose axes all have length L.

Batches (`syntax.assembly`) make `FUSED` in compiled passes, and every other matrix example by
example with its function; those are padded with 0.
"""

MATRICES: Registry[Matrix] = Registry("matrix")

MATRICES.add("distance.v1", tree_distance)
MATRICES.add("depth.v1", tree_depth)
MATRICES.add("ancestor.v1", ancestor_mask)
