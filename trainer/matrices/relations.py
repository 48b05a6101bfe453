"""The matrices of `syntax.matrices.MATRICES` on a device: same names, settings and values.

Each function makes a matrix for the nodes of whole sequences; `derive` then shows what a batch
keeps of them. What they mean, and which paper they are from, is said where the host makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from syntax.errors import SpecError
from syntax.matrices import MATRICES, SgNetVariant
from syntax.matrices import UNREACHABLE as UNREACHABLE_PADDING
from syntax.trees.ud import upos_id
from syntax.variant import Variant, is_released
from trainer.batch import UNREACHABLE
from trainer.matrices.forest import DeviceForest

_PUNCT: Final = upos_id("PUNCT")


def derive(name: str, forest: DeviceForest, width: int) -> Tensor:
    """One matrix of a batch.

    Args:
        name: As `MATRICES` takes it, settings in brackets.
        forest: The nodes of the batch's whole sequences.
        width: Positions of the batch, L.

    Returns:
        Padded as on the host. *Shape:* (B, L) or (B, L, L).

    Raises:
        UnknownNameError: No such matrix.
        SpecError: It has no form for devices, or no such settings.
    """
    host, base = MATRICES[name], MATRICES.resolve(name).partition("(")[0]
    if base not in ON_DEVICE:
        raise SpecError(
            f"the matrix {name!r} cannot be derived on a device, only {', '.join(ON_DEVICE)}; let "
            "the stream make it: set data.matrices=host"
        )
    settings: dict[str, Any] = host.keywords if isinstance(host, partial) else {}
    values = ON_DEVICE[base](forest, **settings)
    padding = MATRICES.padding(name)
    far = UNREACHABLE[values.dtype] if padding == UNREACHABLE_PADDING else int(padding)
    return forest.show(values, width, far)


def _distance(forest: DeviceForest) -> Tensor:
    return forest.distance_BNN


def _depth(forest: DeviceForest) -> Tensor:
    return forest.depth_BN.to(forest.dtype)


def _ancestor(forest: DeviceForest) -> Tensor:
    return forest.ancestor_BNN


def _windowed_distance(forest: DeviceForest, variant: Variant = "as_published") -> Tensor:
    distance_BNN = forest.distance_BNN
    before_BN, after_BN = _neighbours(forest)
    windowed_BNN = torch.minimum(distance_BNN, _rows(distance_BNN, before_BN))
    if is_released(variant):
        return windowed_BNN
    return torch.minimum(windowed_BNN, _rows(distance_BNN, after_BN))


def _neighbours(forest: DeviceForest) -> tuple[Tensor, Tensor]:
    """The nodes before and after each, among those that show themselves; at the ends oneself."""
    N = forest.source_BN.shape[1]
    own_N = torch.arange(N, device=forest.source_BN.device)
    points_BN = (forest.source_BN == own_N) & forest.real_BN
    at_or_before_BN = torch.where(points_BN, own_N, -1).cummax(1).values
    at_or_after_BN = torch.where(points_BN, own_N, N).flip(1).cummin(1).values.flip(1)
    before_BN = torch.nn.functional.pad(at_or_before_BN, (1, 0), value=-1)[:, :-1]
    after_BN = torch.nn.functional.pad(at_or_after_BN, (0, 1), value=N)[:, 1:]
    return (
        torch.where(before_BN < 0, own_N, before_BN),
        torch.where(after_BN == N, own_N, after_BN),
    )


def _rows(matrix_BNN: Tensor, index_BN: Tensor) -> Tensor:
    return matrix_BNN.gather(1, index_BN[:, :, None].expand(matrix_BNN.shape))


def _sla_mask(
    forest: DeviceForest,
    threshold: int = 3,
    variant: Variant = "as_published",
    punctuation: bool = False,
) -> Tensor:
    distance_BNN = _windowed_distance(forest, variant)
    special_BN = forest.special_BN
    visible_BN = special_BN | (forest.upos_BN == _PUNCT) if punctuation else special_BN
    near_BNN = (distance_BNN <= threshold) & (distance_BNN != UNREACHABLE[distance_BNN.dtype])
    mask_BNN = near_BNN | visible_BN[:, None, :]
    first_BN = special_BN & (special_BN.cumsum(1) == 1)
    everything_BN = first_BN if is_released(variant) else special_BN
    return torch.where(special_BN[:, :, None], everything_BN[:, :, None], mask_BNN)


def _pruned_distance(forest: DeviceForest, keep: int = 1) -> Tensor:
    distance_BNN = forest.distance_BNN
    gone_BN = _pruned(forest, keep)
    gone_BNN = gone_BN[:, :, None] | gone_BN[:, None, :]
    gone_BNN = gone_BNN & ~torch.eye(gone_BN.shape[1], dtype=torch.bool, device=gone_BN.device)
    return distance_BNN.masked_fill(gone_BNN, UNREACHABLE[distance_BNN.dtype])


def _pruned(forest: DeviceForest, keep: int) -> Tensor:
    """Which nodes are cut off; none of a sequence without marks. *Shape:* (B, N)."""
    if keep < 0:
        return torch.zeros_like(forest.real_BN)
    marked_BN = torch.zeros_like(forest.parents_BN, dtype=torch.int32).scatter_reduce(
        1, forest.source_BN, forest.marked_BN.int(), "amax"
    )
    path_BN = _on_paths(forest, marked_BN)
    above_BN, _ = forest.nearest_above(path_BN)
    far_BN = (above_BN < 0) | (forest.depth_BN - above_BN > keep)
    return far_BN & marked_BN.any(1, keepdim=True)


def _on_paths(forest: DeviceForest, marked_BN: Tensor) -> Tensor:
    """Nodes between a marked one and the lowest common ancestor of all marked ones of its tree."""
    ancestor_BNN = forest.ancestor_BNN
    below_BN = (ancestor_BNN * marked_BN[:, :, None]).sum(1)
    of_tree_BN = ((forest.shared_BNN > 0) * marked_BN[:, :, None]).sum(1)
    covers_BN = (below_BN > 0) & (below_BN == of_tree_BN)
    deepest_BN = forest.highest_below(torch.where(covers_BN, forest.depth_BN, -1))
    return (below_BN > 0) & (~covers_BN | (deepest_BN == forest.depth_BN))


def _gate_weights(
    forest: DeviceForest, keep: int = -1, threshold: int = 2, variant: Variant = "as_published"
) -> Tensor:
    return distance_weights(_pruned_distance(forest, keep), threshold, variant)


def distance_weights(distance: Tensor, threshold: int, variant: Variant = "as_published") -> Tensor:
    """`syntax.matrices.distance_weights` on a device: float32, the shape of ``distance``.

    Args:
        distance: uint8 or int32 distances, `trainer.batch.UNREACHABLE` without a path.
        threshold: The largest distance that is attended to.
        variant: Which diagonal.

    Raises:
        SpecError: As there.
    """
    most = UNREACHABLE[distance.dtype]
    if not 0 < threshold < most:
        raise SpecError(f"threshold is {threshold}; it must lie between 1 and {most - 1}")
    steps = torch.arange(threshold + 2, dtype=torch.float32, device=distance.device)
    weights = 1 / steps
    weights[0] = 0 if is_released(variant) else 1
    weights[-1] = 0
    return weights[distance.int().clamp(max=threshold + 1)]


def _sgnet_mask(forest: DeviceForest, variant: SgNetVariant = "as_published") -> Tensor:
    special_BN = forest.special_BN
    word_BNN = ~(special_BN[:, :, None] | special_BN[:, None, :])
    if variant == "as_published":
        return (forest.ancestor_BNN & word_BNN) | torch.diag_embed(special_BN)
    return _yield_spans(forest, alone=variant == "convert_span") & word_BNN


def _yield_spans(forest: DeviceForest, alone: bool) -> Tensor:
    """``[i, j]``: i lies in the span of j's subtree, which may be one node ``alone`` or not.

    *Shape:* (B, N, N).
    """
    own_N = torch.arange(forest.parents_BN.shape[1], device=forest.parents_BN.device)
    place_BN = own_N.expand(forest.parents_BN.shape)
    first_BN, last_BN = forest.lowest_below(place_BN), forest.highest_below(place_BN)
    row_BN1 = place_BN[:, :, None]
    inside_BNN = (first_BN[:, None, :] <= row_BN1) & (row_BN1 <= last_BN[:, None, :])
    return inside_BNN if alone else inside_BNN & (first_BN < last_BN)[:, None, :]


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


def _lca_depth(forest: DeviceForest) -> Tensor:
    return forest.shared_BNN - 1


def _subtree_height(forest: DeviceForest) -> Tensor:
    shown_BN = forest.depth_BN.gather(1, forest.source_BN)
    return forest.highest_below(shown_BN) - forest.depth_BN


def _subtree_size(forest: DeviceForest) -> Tensor:
    return forest.ancestor_BNN.sum(1, dtype=torch.int32)


def _subtree_first(forest: DeviceForest) -> Tensor:
    return forest.lowest_below(forest.column_BN).int()


def _subtree_last(forest: DeviceForest) -> Tensor:
    return forest.highest_below(forest.column_BN).int()


def _subtree_is_projective(forest: DeviceForest) -> Tensor:
    own_N = torch.arange(forest.parents_BN.shape[1], device=forest.parents_BN.device)
    place_BN = own_N.expand(forest.parents_BN.shape)
    span_BN = forest.highest_below(place_BN) - forest.lowest_below(place_BN) + 1
    return span_BN == _subtree_size(forest)


ON_DEVICE: Final[dict[str, Callable[..., Tensor]]] = {
    "distance.v1": _distance,
    "depth.v1": _depth,
    "ancestor.v1": _ancestor,
    "sla_distance.v1": _windowed_distance,
    "sla_mask.v1": _sla_mask,
    "gate_distance.v1": _pruned_distance,
    "gate_weights.v1": _gate_weights,
    "sgnet_mask.v1": _sgnet_mask,
    "lca.v1": _lca,
    "lca_depth.v1": _lca_depth,
    "subtree_height.v1": _subtree_height,
    "subtree_size.v1": _subtree_size,
    "subtree_first.v1": _subtree_first,
    "subtree_last.v1": _subtree_last,
    "subtree_is_projective.v1": _subtree_is_projective,
}
"""The matrices by their full names; a test holds that none is missing."""
