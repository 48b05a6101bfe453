"""The matrices by name, as requests, recipes and tables ask for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.matrices.gate import gate_weights, pruned_distance
from syntax.matrices.lca import lca_depth, lowest_common_ancestor
from syntax.matrices.sgnet import sgnet_mask
from syntax.matrices.sla import sla_mask, windowed_distance
from syntax.matrices.subtrees import (
    subtree_first,
    subtree_height,
    subtree_is_projective,
    subtree_last,
    subtree_size,
)
from syntax.matrices.tree import ancestor_mask, tree_depth, tree_distance
from syntax.options import parse_call, value_of
from syntax.registry import Registry

Matrix = Callable[..., NDArray[Any]]
"""From the parents of a tree or forest (L,) to an array whose axes all have length L.

Keyword-only parameters named in `COLUMNS` are further columns of the same L nodes, which
`syntax.batches` passes; their defaults stand for unknown values. All other keyword-only parameters
are settings, which a name may carry: ``sla_mask(threshold=4)``.
"""

COLUMNS: Final = ("source", "column", "special", "upos", "marks")
"""Columns of the nodes that a matrix may read beside their parents.

``source``: the node whose row and column each node shows; ``column``: its place among what
truncation keeps, -1 for none; ``special``: True for special tokens; ``upos``: its id of
`syntax.trees.ud`; ``marks``: non-zero in the marked spans.
"""

UNREACHABLE: Final = "unreachable"
"""Padding of distances, which stands for the dtype's maximum."""


class MatrixRegistry(Registry[Matrix]):
    """Matrices by versioned name; a name may carry settings in brackets.

    >>> MATRICES.resolve("sla_mask(variant=as_released, threshold=4)")
    'sla_mask.v1(threshold=4,variant=as_released)'
    """

    def __init__(self) -> None:
        super().__init__("matrix")
        self._padding: dict[str, int | str] = {}

    def add(self, name: str, item: Matrix, padding: int | str = 0) -> Matrix:
        """Register a matrix; padded cells of batches have the value ``padding``."""
        self._padding[name] = padding
        return super().add(name, item)

    def padding(self, name: str) -> int | str:
        return self._padding.get(super().resolve(_take_apart(name)[0]), 0)

    def columns(self, name: str) -> tuple[str, ...]:
        return tuple(column for column in COLUMNS if column in _keywords(self[name]))

    def resolve(self, name: str) -> str:
        """The full name, with settings sorted by name."""
        base, settings = _take_apart(name)
        base = super().resolve(base)
        if not settings:
            return base
        item = self._items[base]
        known = {key: value for key, value in _keywords(item).items() if key not in COLUMNS}
        for key, value in settings.items():
            if key not in known or type(value) is not type(known[key]):
                listed = ", ".join(f"{key}={_shown(value)}" for key, value in known.items())
                raise SpecError(
                    f"the matrix {base!r} has no setting {key}={_shown(value)}; its settings and "
                    f"their defaults are: {listed or 'none'}"
                )
        item(np.empty(0, np.int32), **settings)
        shown = ",".join(f"{key}={_shown(value)}" for key, value in sorted(settings.items()))
        return f"{base}({shown})"

    def __getitem__(self, name: str) -> Matrix:
        base, settings = _take_apart(self.resolve(name))
        item = self._items[base]
        return partial(item, **settings) if settings else item

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(_take_apart(name)[0])


def _take_apart(name: str) -> tuple[str, dict[str, Any]]:
    call = parse_call(name)
    if call is None:
        return name, {}
    return call.name, {key: value_of(text or "") for key, text in call.settings.items()}


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _keywords(item: Matrix) -> dict[str, Any]:
    parameters = signature(item).parameters.values()
    return {x.name: x.default for x in parameters if x.kind is Parameter.KEYWORD_ONLY}


MATRICES: Final = MatrixRegistry()

MATRICES.add("distance.v1", tree_distance, padding=UNREACHABLE)
MATRICES.add("depth.v1", tree_depth)
MATRICES.add("ancestor.v1", ancestor_mask)
MATRICES.add("sla_distance.v1", windowed_distance, padding=UNREACHABLE)
MATRICES.add("sla_mask.v1", sla_mask)
MATRICES.add("gate_distance.v1", pruned_distance, padding=UNREACHABLE)
MATRICES.add("gate_weights.v1", gate_weights)
MATRICES.add("sgnet_mask.v1", sgnet_mask)
MATRICES.add("lca.v1", lowest_common_ancestor, padding=-1)
MATRICES.add("lca_depth.v1", lca_depth, padding=-1)
MATRICES.add("subtree_height.v1", subtree_height)
MATRICES.add("subtree_size.v1", subtree_size)
MATRICES.add("subtree_first.v1", subtree_first, padding=-1)
MATRICES.add("subtree_last.v1", subtree_last, padding=-1)
MATRICES.add("subtree_is_projective.v1", subtree_is_projective)
