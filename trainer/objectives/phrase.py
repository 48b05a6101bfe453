"""Pieces of a phrase attend to the same positions, and pieces outside of it to others.

Zhang et al. 2022 (Findings of ACL, "Syntax-guided contrastive learning for pre-trained language
model"), in the equations 10 and 11 of Gessler and Schneider 2023, which are ``as_published`` here.
Pieces are compared by the Jensen-Shannon divergence of what they attend to in the last layer,
averaged over heads. Where an encoder also attends locally (`trainer.systems.sla`), that is the mix
of both attentions; no released code has the two together, and the choice is ours.

Letters in shapes: ``B`` examples, ``N`` heads, ``L`` wordpieces, ``R`` rows of an example, ``S``
samples of all examples, ``K`` negatives of a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor, nn

from syntax.contrast.base import PADDING
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.contrastive import examples_of, info_nce, mean_over
from trainer.nn.encoder import Encoder
from trainer.nn.rows import AttentionRows
from trainer.objectives.options import PHRASE_ARRAYS, PhraseContrastOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


@dataclass(frozen=True, slots=True)
class _Form:
    """One of the functions that ``phrase_loss`` names.

    Attributes:
        floor: Least probability, without making the rest smaller.
        epsilon: Added to what stands in a logarithm.
    """

    similarity: float
    factor: float = 1.0
    floor: float = 0.0
    epsilon: float = 0.0
    per_position: bool = False


_FORMS: Final = {
    "as_published": _Form(similarity=-1.0),
    "synclm": _Form(similarity=1.0, factor=-1.0, epsilon=1e-6),
    "lr_sib": _Form(similarity=1.0, floor=1e-6, per_position=True),
}


class PhraseContrast(nn.Module):
    """Contrast of attention between positives and negatives of phrase samples.

    The loss is the mean over the samples of a batch (`syntax.contrast.PhraseSampler`) that have
    negatives. Each row is computed once (`trainer.nn.rows`). The host waits for the device once in
    each step, to know how many rows an example has at most.
    """

    needs: frozenset[str] = frozenset({"attention_rows"})

    def __init__(
        self,
        options: PhraseContrastOptions,
        config: SyntaxConfig,  # noqa: ARG002
        encoder: Encoder,  # noqa: ARG002
    ) -> None:
        super().__init__()
        self.options = options

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        offsets, anchor, positive, negatives = map(batch.extra, PHRASE_ARRAYS)
        assert encoding.attention_rows is not None
        example_S = examples_of(offsets, len(anchor))
        # Unused cells repeat the anchor, so that they take no row of their own.
        real_SK = negatives != PADDING
        filled_SK = torch.where(real_SK, negatives, anchor[:, None])
        members_SM = torch.cat([anchor[:, None], positive[:, None], filled_SK], 1).long()
        weights_SML = self._weights(encoding.attention_rows, batch, example_S, members_SM)
        with torch.autocast(weights_SML.device.type, enabled=False):
            real_SL = batch.attention_mask_BL[example_S]
            losses_S = self.losses(weights_SML, real_SK, real_SL)
        return mean_over(losses_S, real_SK.any(1))

    def losses(self, weights_SML: Tensor, real_SK: Tensor, real_SL: Tensor) -> Tensor:
        """The loss of each sample. *Shape:* (S,).

        Weights are of anchor, positive and negatives (M = 2 + K), a mean over heads, 0 on padding.
        """
        form = _FORMS[self.options.phrase_loss]
        divergence_SM = _divergences(weights_SML, real_SL, form)
        own = self.options.per_position
        if form.per_position if own is None else own:
            divergence_SM = divergence_SM / real_SL.sum(1, keepdim=True).clamp(min=1)
        similarity_SM = form.similarity * divergence_SM
        tau = self.options.temperature
        return form.factor * info_nce(similarity_SM[:, 0], similarity_SM[:, 1:], real_SK, tau)

    def _weights(
        self, rows: AttentionRows, batch: SyntaxBatch, example_S: Tensor, members_SM: Tensor
    ) -> Tensor:
        """Attention of each piece of each sample, a mean over heads. *Shape:* (S, M, L)."""
        B, L = batch.input_ids_BL.shape
        flat_SM = example_S[:, None] * L + members_SM
        wanted_BL = torch.zeros(B * L, dtype=torch.bool, device=flat_SM.device)
        wanted_BL = wanted_BL.index_fill(0, flat_SM.flatten(), True).view(B, L)
        place_BL = wanted_BL.cumsum(1) - 1
        R = int(wanted_BL.sum(1).max())
        # The wanted positions in their order; others fill up examples that have fewer than R.
        positions_BR = (~wanted_BL).byte().argsort(dim=1, stable=True)[:, :R]
        dropped = self.options.attention == "after_dropout" and self.training
        mean_BRL = rows.weights(positions_BR, dropped=dropped).mean(1)
        at_SM = example_S[:, None] * R + place_BL.flatten()[flat_SM]
        return mean_BRL.flatten(0, 1)[at_SM]


def _divergences(weights_SML: Tensor, real_SL: Tensor, form: _Form) -> Tensor:
    """Jensen-Shannon divergences of the first row of each sample from its others.

    *Shape:* (S, M - 1). In nats, from 0 to ln 2: ``1/2 sum x ln x + 1/2 sum y ln y - sum m ln m``
    for ``m = (x+y)/2``, so that no logarithm is taken twice.
    """
    real_S1L = real_SL[:, None]
    weights_SML = weights_SML.clamp(min=form.floor).masked_fill(~real_S1L, 0.0)
    middle_SML = (weights_SML[:, :1] + weights_SML[:, 1:]) / 2
    own_SM, of_middle_SM = _negentropy(weights_SML, form), _negentropy(middle_SML, form)
    return (own_SM[:, :1] + own_SM[:, 1:]) / 2 - of_middle_SM


def _negentropy(weights: Tensor, form: _Form) -> Tensor:
    """``sum x ln(x + epsilon)`` over the last axis; 0 ln 0 is 0, with a finite gradient."""
    least = torch.finfo(weights.dtype).tiny
    return (weights * (weights + form.epsilon).clamp(min=least).log()).sum(-1)
