"""SG-Net's mask on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from syntax.matrices import SgNetVariant
from trainer.matrices.forest import DeviceForest


def sgnet_mask(forest: DeviceForest, variant: SgNetVariant = "as_published") -> Tensor:
    """``[i, j]``: i attends to j. *Shape:* (B, N, N), bool."""
    special_BN = forest.special_BN
    word_BNN = ~(special_BN[:, :, None] | special_BN[:, None, :])
    if variant == "as_published":
        return (forest.ancestor_BNN & word_BNN) | torch.diag_embed(special_BN)
    return _yield_spans(forest, alone=variant == "convert_span") & word_BNN


def _yield_spans(forest: DeviceForest, alone: bool) -> Tensor:
    """``[i, j]``: i lies in the span of j's subtree, which may be one node if ``alone``."""
    own_N = torch.arange(forest.parents_BN.shape[1], device=forest.parents_BN.device)
    place_BN = own_N.expand(forest.parents_BN.shape)
    first_BN, last_BN = forest.lowest_below(place_BN), forest.highest_below(place_BN)
    row_BN1 = place_BN[:, :, None]
    inside_BNN = (first_BN[:, None, :] <= row_BN1) & (row_BN1 <= last_BN[:, None, :])
    return inside_BNN if alone else inside_BNN & (first_BN < last_BN)[:, None, :]


RELATIONS: Final[dict[str, Callable[..., Tensor]]] = {
    "sgnet_mask.v1": sgnet_mask,
}
