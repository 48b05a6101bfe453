"""SLA's matrices on a device: the distance between windows, and the mask of what is near."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from syntax.trees.ud import upos_id
from syntax.variant import Variant, is_released
from trainer.batch import UNREACHABLE
from trainer.matrices.forest import DeviceForest

_PUNCT: Final = upos_id("PUNCT")


def sla_distance(forest: DeviceForest, variant: Variant = "as_published") -> Tensor:
    """Distances from a node or one of its neighbours."""
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


def sla_mask(
    forest: DeviceForest,
    threshold: int = 3,
    variant: Variant = "as_published",
    punctuation: bool = False,
) -> Tensor:
    """``[i, j]``: i attends to j locally. *Shape:* (B, N, N), bool."""
    distance_BNN = sla_distance(forest, variant)
    special_BN = forest.special_BN
    visible_BN = special_BN | (forest.upos_BN == _PUNCT) if punctuation else special_BN
    near_BNN = (distance_BNN <= threshold) & (distance_BNN != UNREACHABLE[distance_BNN.dtype])
    mask_BNN = near_BNN | visible_BN[:, None, :]
    first_BN = special_BN & (special_BN.cumsum(1) == 1)
    everything_BN = first_BN if is_released(variant) else special_BN
    return torch.where(special_BN[:, :, None], everything_BN[:, :, None], mask_BNN)


RELATIONS: Final[dict[str, Callable[..., Tensor]]] = {
    "sla_distance.v1": sla_distance,
    "sla_mask.v1": sla_mask,
}
