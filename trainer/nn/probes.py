"""Structural probes: states must tell tree distances and depths.

The probes are those of Hewitt and Manning (2019); Syntax-MBERT (Ahmad et al. 2021, section 2.4)
trains them on the states of its graph encoder, together with the task.

Letters in shapes: ``B`` examples, ``L`` wordpieces, ``G`` width of the states, ``R`` rank.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from syntax.variant import Variant
from trainer.batch import SyntaxBatch

_INITIAL = 0.05


class DistanceProbe(nn.Module):
    """L1 loss between ||B(g_i - g_j)||^2 and the tree distance of pieces i and j.

    Args:
        target: ``as_published`` compares with the squared tree distance, ``as_released`` with the
            tree distance itself.
    """

    own_initial_weights = True

    def __init__(self, width: int, rank: int = 64, target: Variant = "as_published") -> None:
        super().__init__()
        self.squared = target == "as_published"
        self.projection_GR = nn.Parameter(torch.empty(width, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.projection_GR, -_INITIAL, _INITIAL)

    def predict(self, states_BLG: Tensor) -> Tensor:
        """Squared L2 distances after projection, float32. *Shape:* (B, L, L)."""
        with torch.autocast(states_BLG.device.type, enabled=False):
            points_BLR = states_BLG.float() @ self.projection_GR.float()
            norms_BL = points_BLR.square().sum(-1)
            products_BLL = points_BLR @ points_BLR.transpose(1, 2)
            return norms_BL[:, :, None] + norms_BL[:, None, :] - 2.0 * products_BLL

    def forward(self, states_BLG: Tensor, batch: SyntaxBatch) -> Tensor:
        """Mean over examples of the sum over joined pairs divided by length squared; a scalar."""
        target_BLL = batch.distances().float()
        if self.squared:
            target_BLL = target_BLL.square()
        errors_BLL = (self.predict(states_BLG) - target_BLL).abs()
        errors_BLL = errors_BLL.masked_fill(~batch.reachable_BLL, 0.0)
        return (errors_BLL.sum((1, 2)) / batch.lengths_B.float().square()).mean()


class DepthProbe(nn.Module):
    """L1 loss between ||B g_i||^2 and the depth of piece i."""

    own_initial_weights = True

    def __init__(self, width: int, rank: int = 64) -> None:
        super().__init__()
        self.projection_GR = nn.Parameter(torch.empty(width, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.projection_GR, -_INITIAL, _INITIAL)

    def predict(self, states_BLG: Tensor) -> Tensor:
        """Squared L2 norms after projection, float32. *Shape:* (B, L)."""
        with torch.autocast(states_BLG.device.type, enabled=False):
            return (states_BLG.float() @ self.projection_GR.float()).square().sum(-1)

    def forward(self, states_BLG: Tensor, batch: SyntaxBatch) -> Tensor:
        """Mean over examples of the sum over joined pieces divided by length; a scalar.

        A piece that no path joins to another stands in no tree: its depth of 0 says nothing.
        """
        errors_BL = (self.predict(states_BLG) - batch.depths().float()).abs()
        errors_BL = errors_BL.masked_fill(batch.reachable_BLL.sum(-1) < 2, 0.0)
        return (errors_BL.sum(1) / batch.lengths_B.float()).mean()
