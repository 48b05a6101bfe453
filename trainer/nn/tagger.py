"""Tags of tokens over any encoder: an LSTM between, and a CRF behind, where they are asked for.

Letters in shapes: ``B`` sequences, ``L`` positions, ``T`` tokens, ``D`` width, ``C`` classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.batches import IGNORE
from trainer.nn.biaffine import mean_loss
from trainer.nn.context import BiLstm
from trainer.nn.crf import ConditionalRandomField, bioul_names
from trainer.nn.words import ScalarMix, WordStates
from trainer.options.parser import TaggerOptions


class Tokens(NamedTuple):
    """The tokens of a batch.

    Attributes:
        pieces: Token of each position, -1 for none. *Shape:* (B, L).
        places: Position of the first piece of each token, -1 on padding. *Shape:* (B, T).
        tags: Id of each token's tag in the scheme of the model; -100 for none. *Shape:* (B, T).
    """

    pieces: Tensor
    places: Tensor
    tags: Tensor


class TokenTagger(nn.Module):
    """A map from the states of positions to tags of tokens."""

    stored_C: Tensor

    def __init__(
        self, options: TaggerOptions, width: int, layers: int, names: Sequence[str], dropout: float
    ) -> None:
        super().__init__()
        self.mix = None if options.states == "last" else ScalarMix(layers)
        self.pool = WordStates(width, options.pieces)
        self.lstm, self.dropout = None, nn.Dropout(dropout)
        if options.lstm_layers:
            size, drop = options.lstm_width, options.lstm_dropout
            self.lstm = BiLstm(width, size, options.lstm_layers, drop)
            self.dropout, width = nn.Dropout(drop), self.lstm.width
        own = bioul_names(names) if options.crf == "bioul" else tuple(names)
        self.output = nn.Linear(width, len(own))
        self.crf = None
        if options.crf != "none":
            self.crf = ConditionalRandomField(own, options.crf_ends)
        self.summed = options.crf_loss == "sum"
        stored = [names.index(_stored(name)) for name in own]
        self.register_buffer("stored_C", torch.tensor(stored))
        self.size = len(names)

    def forward(self, layers: Sequence[Tensor], tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Scores of the dataset's tags at first pieces, (B, L, C), float32; and the loss.

        With a CRF the tag of its best sequence has the score 1, the others 0. The loss is the mean
        over tokens; with a CRF the mean, or the sum, over the sequences that have tags; 0 without
        any.
        """
        states_BLD = layers[-1] if self.mix is None else self.mix(layers)
        real_BT = tokens.places >= 0
        sources_BT = torch.arange(real_BT.shape[1], device=real_BT.device).expand_as(real_BT)
        states_BTD = self.pool(states_BLD, tokens.pieces, sources_BT)
        if self.lstm is not None:
            states_BTD = self.lstm(states_BTD, real_BT)
        scores_BTC = self.output(self.dropout(states_BTD)).float()
        if self.crf is None:
            found_BTC, loss = scores_BTC, mean_loss(scores_BTC, tokens.tags)
        else:
            loss = self._sequence_loss(scores_BTC, tokens.tags, real_BT)
            best_BT = self.stored_C[self.crf.best(scores_BTC, real_BT)]
            found_BTC = F.one_hot(best_BT, self.size).float()
        return _at_pieces(found_BTC, tokens.places, states_BLD.shape[1]), loss

    def _sequence_loss(self, scores_BTC: Tensor, tags_BT: Tensor, real_BT: Tensor) -> Tensor:
        assert self.crf is not None
        tagged_B = (tags_BT != IGNORE).any(1)
        losses_B = self.crf(scores_BTC, tags_BT, real_BT & (tags_BT != IGNORE))
        total = torch.where(tagged_B, losses_B, 0.0).sum()
        return total if self.summed else total / tagged_B.sum().clamp(min=1)


def _stored(name: str) -> str:
    """A tag of BIOUL in BIO; one of BIO as it is."""
    return {"L": "I", "U": "B"}.get(name[0], name[0]) + name[1:] if "-" in name else name


def _at_pieces(found_BTC: Tensor, places_BT: Tensor, positions: int) -> Tensor:
    """Scores of tokens, at the positions of their first pieces. *Shape:* (B, L, C)."""
    B, _, C = found_BTC.shape
    laid_BLC = found_BTC.new_zeros(B, positions + 1, C)
    # What is behind the last position takes up the padding.
    places_BT = torch.where(places_BT >= 0, places_BT, positions)
    laid_BLC.scatter_(1, places_BT[:, :, None].expand(-1, -1, C), found_BTC)
    return laid_BLC[:, :-1]
