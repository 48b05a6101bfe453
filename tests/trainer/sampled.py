"""Objectives for tests: of phrase samples, of attention weights, and critics."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributed import get_rank, is_initialized
from torch.nn.functional import binary_cross_entropy_with_logits

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.options import ObjectiveOptions

PHRASE_ARRAYS = ("phrase_offsets", "phrase_anchor", "phrase_positive", "phrase_negatives")


@dataclass(frozen=True, slots=True)
class NearOptions(ObjectiveOptions):
    """States of a phrase are to be near each other."""

    name: str = "near.v1"

    def arrays(self) -> tuple[str, ...]:
        return PHRASE_ARRAYS


class Near(nn.Module):
    """Mean squared distance between anchors and positives of the samples."""

    needs: frozenset[str] = frozenset()

    def __init__(self, options: NearOptions, config: SyntaxConfig, encoder: Encoder) -> None:
        super().__init__()
        self.options = options

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        offsets, anchor, positive, negatives = map(batch.extra, PHRASE_ARRAYS)
        states = encoding.last_hidden_state
        assert states is not None
        assert negatives.shape[0] == len(anchor) == int(offsets[-1])
        rows = torch.repeat_interleave(torch.arange(len(batch)), offsets.diff())
        gaps = (states[rows, anchor.long()] - states[rows, positive.long()]).square().mean(-1)
        return gaps.sum() / max(1, len(gaps))


@dataclass(frozen=True, slots=True)
class CriticOptions(ObjectiveOptions):
    """A classifier of streams; its states are not detached, so that only its optimizer keeps its
    gradients from the encoder."""

    name: str = "critic.v1"


class Critic(nn.Module):
    """Tells the main stream from others by the mean of the states."""

    needs: frozenset[str] = frozenset()

    def __init__(self, options: ObjectiveOptions, config: SyntaxConfig, encoder: Encoder) -> None:
        super().__init__()
        self.options = options
        self.output = nn.Linear(encoder.width, 1)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        assert encoding.last_hidden_state is not None
        logits = self.output(encoding.last_hidden_state.mean(1)).float().squeeze(-1)
        wanted = torch.full_like(logits, float(batch.stream == "main"))
        return binary_cross_entropy_with_logits(logits, wanted)


@dataclass(frozen=True, slots=True)
class FirstOptions(ObjectiveOptions):
    """Pieces are to pay no attention to the first one."""

    name: str = "first.v1"


class First(nn.Module):
    """Mean attention of real pieces to the first, over heads and layers."""

    needs = frozenset({"attentions"})

    def __init__(self, options: FirstOptions, config: SyntaxConfig, encoder: Encoder) -> None:
        super().__init__()
        self.options = options

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        assert encoding.attentions is not None
        paid_BL = torch.stack(encoding.attentions)[..., 0].mean((0, 2))
        real_BL = batch.attention_mask_BL
        return ((paid_BL * real_BL).sum(1) / real_BL.sum(1)).mean()


@dataclass(frozen=True, slots=True)
class RareOptions(ObjectiveOptions):
    """A critic that finds nothing to learn in the batches of the second process."""

    name: str = "rare.v1"


class Rare(Critic):
    """The loss of the second process is a constant."""

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        if is_initialized() and get_rank() == 1:
            return torch.zeros(())
        return super().forward(encoding, batch)
