"""The matrices of `syntax.matrices.MATRICES` on a device: same names, settings and values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from syntax.errors import SpecError
from syntax.matrices import MATRICES
from syntax.matrices import UNREACHABLE as UNREACHABLE_PADDING
from trainer.batch import UNREACHABLE
from trainer.matrices.forest import DeviceForest
from trainer.systems import SYSTEMS


def derive(name: str, forest: DeviceForest, width: int) -> Tensor:
    """One matrix of a batch, padded as on the host. *Shape:* (B, L) or (B, L, L)."""
    host, base = MATRICES[name], MATRICES.resolve(name).partition("(")[0]
    if base not in (known := on_device()):
        raise SpecError(
            f"the matrix {name!r} cannot be derived on a device, only {', '.join(known)}; let the "
            "stream make it: set data.matrices=host"
        )
    settings: dict[str, Any] = host.keywords if isinstance(host, partial) else {}
    values = known[base](forest, **settings)
    padding = MATRICES.padding(name)
    far = UNREACHABLE[values.dtype] if padding == UNREACHABLE_PADDING else int(padding)
    return forest.show(values, width, far)


def _lca(forest: DeviceForest) -> Tensor:
    """Columns of lowest common ancestors, or of the nearest kept node above."""
    B, N = forest.parents_BN.shape
    own_N = torch.arange(N, device=forest.parents_BN.device)
    # [i, d]: the ancestor of i at depth d; what is no ancestor goes to a last column.
    depth_BNN = torch.where(forest.ancestor_BNN, forest.depth_BN[:, None, :].long(), N)
    at_depth_BNN = own_N.new_zeros(B, N, N + 1).scatter(2, depth_BNN, own_N.expand(B, N, N))
    common_BNN = at_depth_BNN.gather(2, (forest.shared_BNN - 1).clamp(min=0).long())
    _, kept_BN = forest.nearest_above(forest.column_BN >= 0)
    column_BN = forest.column_BN.gather(1, kept_BN.clamp(min=0)).masked_fill(kept_BN < 0, -1)
    shown_BNN = column_BN[:, :, None].expand(B, N, N).gather(1, common_BNN)
    return shown_BNN.masked_fill(forest.shared_BNN == 0, -1).int()


def _subtree_height(forest: DeviceForest) -> Tensor:
    shown_BN = forest.depth_BN.gather(1, forest.source_BN)
    return forest.highest_below(shown_BN) - forest.depth_BN


def _subtree_size(forest: DeviceForest) -> Tensor:
    return forest.ancestor_BNN.sum(1, dtype=torch.int32)


def _subtree_is_projective(forest: DeviceForest) -> Tensor:
    own_N = torch.arange(forest.parents_BN.shape[1], device=forest.parents_BN.device)
    place_BN = own_N.expand(forest.parents_BN.shape)
    span_BN = forest.highest_below(place_BN) - forest.lowest_below(place_BN) + 1
    return span_BN == _subtree_size(forest)


GENERIC: Final[dict[str, Callable[[DeviceForest], Tensor]]] = {
    "distance.v1": lambda forest: forest.distance_BNN,
    "depth.v1": lambda forest: forest.depth_BN.to(forest.dtype),
    "ancestor.v1": lambda forest: forest.ancestor_BNN,
    "lca.v1": _lca,
    "lca_depth.v1": lambda forest: forest.shared_BNN - 1,
    "subtree_height.v1": _subtree_height,
    "subtree_size.v1": _subtree_size,
    "subtree_first.v1": lambda forest: forest.lowest_below(forest.column_BN).int(),
    "subtree_last.v1": lambda forest: forest.highest_below(forest.column_BN).int(),
    "subtree_is_projective.v1": _subtree_is_projective,
}


def on_device() -> dict[str, Callable[..., Tensor]]:
    found: dict[str, Callable[..., Tensor]] = {**GENERIC}
    for system in SYSTEMS.values():
        found |= system.load_relations()
    return found
