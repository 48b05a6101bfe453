"""Tree matrices from parent vectors, on the device that trains.

At 128 pieces a parent vector is 128 times smaller than the two matrices it spells. Matrices of
whole sequences are derived (``nodes=True``), and then lose what truncation deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from syntax.errors import SpecError
from syntax.matrices import MATRICES
from syntax.matrices import UNREACHABLE as UNREACHABLE_PADDING
from trainer.batch import UNREACHABLE, SyntaxBatch
from trainer.matrices.forest import DeviceForest
from trainer.systems import SYSTEMS

_NO_NODES: Final = (
    "this batch carries no nodes to derive matrices from: stream it with nodes=True, and carry "
    "them (SyntaxBatch.from_numpy(..., extras=node_arrays(arrays)))"
)

NODES: Final = (
    "node_parents",
    "node_source",
    "node_column",
    "node_special",
    "node_upos",
    "node_marks",
)
"""Arrays of nodes in a stream; the last of marked examples only."""


def node_arrays(arrays: Mapping[str, Any]) -> list[str]:
    """Names of the arrays that must reach the device (``extras`` of `SyntaxBatch.from_numpy`)."""
    there = [name for name in NODES if name in arrays]
    if not there:
        raise SpecError(_NO_NODES)
    return there


def with_matrices(batch: SyntaxBatch, matrices: Iterable[str] = ()) -> SyntaxBatch:
    """The batch with its matrices derived on its device from the nodes among its ``extras``.

    Further ``matrices`` come among the ``extras``, by their names in `syntax.matrices.MATRICES`:
    ``["sla_mask(threshold=4)"]``. Distances, depths and ancestors are as the host would make them,
    but int32 as soon as a whole sequence has more than 255 nodes.
    """
    if NODES[0] not in batch.extras:
        raise SpecError(_NO_NODES)
    forest = DeviceForest.of(*(batch.extras.get(name) for name in NODES))  # type: ignore[arg-type]
    width = batch.input_ids_BL.shape[1]
    others = {name: value for name, value in batch.extras.items() if name not in NODES}
    return replace(
        batch,
        distance_BLL=derive("distance", forest, width),
        depth_BL=derive("depth", forest, width),
        ancestor_BLL=derive("ancestor", forest, width),
        extras={**others, **{name: derive(name, forest, width) for name in matrices}},
    )


def derive(name: str, forest: DeviceForest, width: int) -> Tensor:
    """One matrix of a batch, as the host would make and pad it. *Shape:* (B, L) or (B, L, L)."""
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
