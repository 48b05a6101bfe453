"""Adversarial training: states that do not tell the language.

Ahmad et al. 2019, "Cross-lingual dependency parsing with unlabeled auxiliary languages".

A discriminator D learns to tell the language of states, and the encoder learns to hide it. Both are
halves of one loss: D reads detached states, and the encoder's half has D's weights detached, so one
backward pass gives each its own gradient. Let a be a batch of the source language and b one of an
auxiliary language, of size n each, and BCE and CE means over words:

========================  ==========================================  =======================
method                    D minimises                                 the encoder minimises
========================  ==========================================  =======================
``gan`` (as published)    BCE(D(a), 1) + BCE(D(b), 0)                 -lambda times the same
``gan`` (as released)     (BCE(D(a), y1) + BCE(D(b), y0)) / 2         lambda BCE(D(b), y1)
``wgan``                  mean D(b) - mean D(a)                       -lambda mean D(b)
``reversal``              (CE(D(a)) + CE(D(b))) / 2                   -lambda times the same
``multitask``             likewise                                    lambda times the same
========================  ==========================================  =======================

Each loss is a sum of a part of a and a part of b, so each stream has its own part.

Letters in shapes: ``B`` sequences, ``L`` positions, ``W`` words, ``D`` width of the states, ``C``
scores: 1, or one for each language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.discriminator import Discriminator, StrongDiscriminator
from trainer.nn.encoder import Encoder
from trainer.objectives.adversary_options import READ, AdversaryOptions
from trainer.options.entries import MAIN

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class LanguageAdversary(nn.Module):
    """A discriminator, and what it teaches the encoder; the source is first in ``languages``."""

    needs: frozenset[str] = frozenset()

    def __init__(self, options: AdversaryOptions, config: SyntaxConfig, encoder: Encoder) -> None:
        super().__init__()
        if options.is_soft and not options.soft_labels:
            raise SpecError(
                f"objectives.{options.name}.soft_labels is empty, and no run has drawn them; give "
                "two numbers, of the source and of the auxiliary language"
            )
        self.options = options
        others = (
            stream
            for stream in config.streams
            if options.name in {one.name for one in config.objective_options(stream)}
        )
        self.languages = (MAIN, *others)
        scores = len(self.languages) if options.method in ("reversal", "multitask") else 1
        self.dropout = nn.Dropout1d(options.dropout)
        self.discriminator: Discriminator
        if options.discriminator == "strong":
            self.discriminator = StrongDiscriminator(
                encoder.width, scores, options.level, options.residual
            )
        else:
            hidden = () if options.discriminator == "weak" else (256, 128)
            self.discriminator = Discriminator(encoder.width, scores, hidden, options.level)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        """The part of D's loss that is of this batch, a scalar.

        Its gradient is that of D's loss for D, and that of the encoder's loss for the encoder,
        which adds nothing to the value.
        """
        assert encoding.last_hidden_state is not None
        states_BWD, real_BW = self._read(encoding.last_hidden_state, batch.extra(READ))
        language = self.languages.index(batch.stream)
        scores_BWC, counted_BW = self.discriminator(states_BWD.detach(), real_BW)
        own = self.discriminator_loss(scores_BWC, counted_BW, language)
        if not torch.is_grad_enabled():
            return own
        fixed = {name: of.detach() for name, of in self.discriminator.named_parameters()}
        scores_BWC, counted_BW = functional_call(self.discriminator, fixed, (states_BWD, real_BW))
        further = self.encoder_loss(scores_BWC, counted_BW, language)
        return own + self.options.strength * (further - further.detach())

    def discriminator_loss(self, scores_BWC: Tensor, real_BW: Tensor, language: int) -> Tensor:
        """The part of D's loss of a batch of one language, 0 for the source; a scalar, float32.

        W is 1 where sentences are classified.
        """
        method, is_source = self.options.method, language == 0
        if method == "wgan":
            mean = _mean(scores_BWC[..., 0].float(), real_BW)
            return -mean if is_source else mean
        if method == "gan":
            if self.options.is_soft:
                return _binary(scores_BWC, real_BW, self.options.soft_labels[language > 0]) / 2
            return _binary(scores_BWC, real_BW, float(is_source))
        gold_BW = torch.full_like(real_BW, language, dtype=torch.long)
        losses_BW = F.cross_entropy(scores_BWC.float().transpose(1, 2), gold_BW, reduction="none")
        return _mean(losses_BW, real_BW) / 2

    def encoder_loss(self, scores_BWC: Tensor, real_BW: Tensor, language: int) -> Tensor:
        """The part of the encoder's loss, without lambda."""
        if self.options.method == "wgan" or self.options.is_soft:
            if language == 0:  # these teach by the auxiliary language alone
                return scores_BWC.sum() * 0.0
            if self.options.is_soft:
                return _binary(scores_BWC, real_BW, self.options.soft_labels[0])
        sign = 1 if self.options.method == "multitask" else -1
        return sign * self.discriminator_loss(scores_BWC, real_BW, language)

    def _read(self, states_BLD: Tensor, positions_BW: Tensor) -> tuple[Tensor, Tensor]:
        """The states that D reads, (B, W, D), and where there are some, bool (B, W)."""
        states_BLD = self.dropout(states_BLD.transpose(1, 2)).transpose(1, 2)
        real_BW = positions_BW >= 0
        at_BWD = positions_BW.clamp(min=0)[..., None].expand(-1, -1, states_BLD.shape[2])
        return states_BLD.gather(1, at_BWD).masked_fill(~real_BW[..., None], 0.0), real_BW


def _binary(scores_BWC: Tensor, real_BW: Tensor, label: float) -> Tensor:
    scores_BW = scores_BWC[..., 0].float()
    gold_BW = torch.full_like(scores_BW, label)
    losses_BW = F.binary_cross_entropy_with_logits(scores_BW, gold_BW, reduction="none")
    return _mean(losses_BW, real_BW)


def _mean(values_BW: Tensor, real_BW: Tensor) -> Tensor:
    """The mean where there is a word; 0 without any."""
    return values_BW.masked_fill(~real_BW, 0.0).sum() / real_BW.sum().clamp(min=1)
