"""Syntax-BERT: every layer is a set of sub-networks, the same weights through different masks.

Bai et al. 2021 (https://aclanthology.org/2021.eacl-main.262), section 3; masks and aggregation are
compared with the release. Letters in shapes: ``J`` masks, and as in `trainer.nn.attention`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import SubNetworks, check_reads_syntax, never_empty
from trainer.nn.encoder import StockEncoder
from trainer.nn.selfcheck import check_hides
from trainer.nn.stock import before_attention, layers_of, run_encoder
from trainer.systems.syntax_masks.options import SyntaxMasksOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class TopicalAttention(nn.Module):
    """``sum_j p_j V c_j`` with ``p = softmax_j(t K c_j)``; at first the mean of the outcomes c."""

    own_initial_weights = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.topic_D = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.topic_D)
        nn.init.eye_(self.value.weight)
        nn.init.zeros_(self.value.bias)

    def forward(self, outcomes_JBLND: Tensor) -> Tensor:
        states_JBLD = outcomes_JBLND.flatten(3)
        shares_JBL = (self.key(states_JBLD) @ self.topic_D).softmax(0)
        # Shares sum to 1, so that values of the mix are the mix of the values.
        mixed_BLD: Tensor = self.value(torch.einsum("jbl,jbld->bld", shares_JBL, states_JBLD))
        return mixed_BLD.view(outcomes_JBLND.shape[1:])


class ReleasedSum(nn.Module):
    """``sum_j c_j / sqrt(J)``."""

    def forward(self, outcomes_JBLND: Tensor) -> Tensor:
        mixed_BLND: Tensor = outcomes_JBLND.sum(0) * len(outcomes_JBLND) ** -0.5
        return mixed_BLND


class SyntaxMasksEncoder(StockEncoder):
    """States of the pieces; the attention of each layer is a mix of sub-networks."""

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states"})

    options: SyntaxMasksOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        self.topics = nn.ModuleList()
        for number in range(len(layers_of(self.encoder)) if self.options.use_syntax else 0):
            released = self.options.aggregation == "as_released"
            self.topics.append(ReleasedSum() if released else TopicalAttention(self.width))
            before_attention(self.encoder, number, partial(_subnetworks, self.topics[-1]))

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        if len(self.topics):
            check_reads_syntax(self.encoder.config._attn_implementation)
            options["masks"] = syntax_masks(batch, self.options)
        return super().forward(batch, **options)

    def check_attention(self) -> None:
        if len(self.topics):
            check_hides(self.encoder, self._states)

    def _states(self, batch: SyntaxBatch, mask_BLL: Tensor) -> Tensor:
        masks = [never_empty(mask_BLL, batch)] * 2
        return cast(Tensor, run_encoder(self.encoder, batch, masks=masks).last_hidden_state)


def syntax_masks(batch: SyntaxBatch, options: SyntaxMasksOptions) -> list[Tensor]:
    """Ancestors d edges away, for each d, then descendants, siblings, and words of other texts.

    Siblings at d are neither above nor below each other, d + 1 edges apart; for 1 they have one
    parent. A row that sees nothing sees everything. *Shape:* bool, (B, L, L) each.
    """
    distance_BLL, depth_BL = batch.distances().long(), batch.depths().long()
    climb_BLL = depth_BL[:, :, None] - depth_BL[:, None, :]
    steps = range(1, options.distances + 1)
    masks = [(distance_BLL == d) & (climb_BLL == d) for d in steps]
    masks += [(distance_BLL == d) & (climb_BLL == -d) for d in steps]
    masks += [(distance_BLL == d + 1) & (climb_BLL.abs() != d + 1) for d in steps]
    if options.pairs:
        text_BL = batch.extra("segment_ids").long()
        other_BLL = (text_BL[:, :, None] != text_BL[:, None, :]) & (text_BL >= 0)[:, None, :]
        own_BLL = torch.diag_embed(text_BL >= 0)
        masks.append((other_BLL & (text_BL >= 0)[:, :, None]) | own_BLL)
    return [never_empty(mask_BLL, batch) for mask_BLL in masks]


def _subnetworks(mix: nn.Module, _: Tensor, given: Mapping[str, Any]) -> dict[str, Any]:
    return {"subnetworks": SubNetworks(given["masks"], mix)}
