"""A biaffine parser over the words of an encoder (Dozat and Manning 2017).

Its parts take and give tensors alone, so that it can be exported.

Letters in shapes: ``B`` sequences, ``L`` positions, ``W`` words, ``H`` heads: ROOT and the words,
``D`` width, ``R`` relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from syntax.batches import IGNORE
from syntax.options import check_range
from syntax.variant import Variant, is_released
from trainer.nn.biaffine import (
    Biaffine,
    keep_torch_weights,
    possible_heads,
    states_at,
    summed_loss,
)
from trainer.nn.context import BiLstm, HighwayLstm, SharedDropout, WordTransformer
from trainer.nn.words import CharLstm, ScalarMix, WordStates
from trainer.options.parser import ParserOptions

IMPOSSIBLE = -1e9
"""The score of a head in another sentence, of padding, and of a word as its own head."""


class Words(NamedTuple):
    """The words of a batch, as `syntax.batches.words.WordLayout` describes them.

    Attributes:
        pieces: Word of each position. *Shape:* (B, L).
        sources: The word that tells the state of each word. *Shape:* (B, W).
        sentences: -1 on padding. *Shape:* (B, W).
        tags: 0 for none or an unknown one. *Shape:* (B, W).
        chars: Ids (`trainer.nn.words`), where the parser reads them. *Shape:* (B, W, C).
        forms: Ids of the words themselves, likewise; 0 for an unknown one. *Shape:* (B, W).
    """

    pieces: Tensor
    sources: Tensor
    sentences: Tensor
    tags: Tensor
    chars: Tensor | None = None
    forms: Tensor | None = None


class BiaffineParser(nn.Module):
    """Scores of heads and relations; ``width`` is that of the words' states."""

    own_initial_weights = True

    def __init__(self, options: ParserOptions, width: int, layers: int) -> None:
        super().__init__()
        options.check_fitted()
        self.mix = None
        if options.states != "last":
            check_range("parser.mixed_layers", options.mixed_layers or layers, 1, layers)
            self.mix = ScalarMix(options.mixed_layers or layers)
        self.pool = WordStates(width, options.pieces)
        self.projection = self.tags = self.chars = self.forms = None
        if options.projection:
            self.projection = nn.Linear(width, options.projection)
        if options.tag_width:
            self.tags = nn.Embedding(len(options.tags) + 1, options.tag_width)
        if options.char_width:
            self.chars = CharLstm(len(options.chars), options.char_width)
        if options.word_width:
            self.forms = nn.Embedding(len(options.words) + 1, options.word_width)
        width = options.projection or width
        width += options.tag_width + options.char_width + options.word_width
        self.context = _context(options, width)
        self.width = width if self.context is None else self.context.width
        self.shared = SharedDropout(options.dropout) if options.shared_dropout else None
        self.root_D = nn.Parameter(torch.empty(self.width))
        self.as_arc = nn.ModuleList(_projection(options, self.width, options.arc) for _ in "dh")
        self.as_relation = nn.ModuleList(
            _projection(options, self.width, options.relation) for _ in "dh"
        )
        self.arcs = Biaffine(options.arc, options.arc, 1)
        self.relations = Biaffine(
            options.relation,
            options.relation,
            len(options.relations),
            linear=options.labels == "biaffine",
        )
        keep_torch_weights(self)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.root_D, std=0.02)

    def states(self, layers: Sequence[Tensor], words: Words) -> Tensor:
        """States of words. *Shape:* (B, W, width).

        ``layers`` are states of positions, (B, L, D), of each layer for a mix, else of the last.
        """
        states_BLD = layers[-1]
        if self.mix is not None:
            states_BLD = self.mix(layers[-len(self.mix.weights_K) :])
        states_BWD: Tensor = self.pool(states_BLD, words.pieces, words.sources)
        if self.projection is not None:
            states_BWD = self.projection(states_BWD)
        if self.tags is not None:
            states_BWD = torch.cat([states_BWD, self.tags(words.tags)], dim=2)
        if self.chars is not None:
            assert words.chars is not None
            states_BWD = torch.cat([states_BWD, self.chars(words.chars)], dim=2)
        if self.forms is not None:
            states_BWD = torch.cat([states_BWD, self.forms(words.forms)], dim=2)
        if self.context is not None:
            states_BWD = self.context(states_BWD, words.sentences >= 0)
        if self.shared is not None:
            states_BWD = self.shared(states_BWD)
        return states_BWD

    def forward(self, states_BWD: Tensor, sentences_BW: Tensor) -> Tensor:
        """Scores of the heads of each word: ROOT, then the words. *Shape:* (B, W, H), float32."""
        dependents, heads = self.as_arc[0](states_BWD), self.as_arc[1](self._with_root(states_BWD))
        scores_BWH: Tensor = self.arcs(dependents, heads)[:, 0]
        return scores_BWH.masked_fill(~possible_heads(sentences_BW), IMPOSSIBLE)

    def relate(self, states_BWD: Tensor, heads_BW: Tensor) -> Tensor:
        """Scores of each word's relations to its head (0 is ROOT). *Shape:* (B, W, R), float32."""
        dependents, heads = self._related(states_BWD)
        return self.relations.of_pairs(dependents, states_at(heads, heads_BW))

    def probabilities(self, states_BWD: Tensor, arcs_BWH: Tensor) -> Tensor:
        """Probabilities of heads, each with its best relation. *Shape:* (B, W, H), float32."""
        dependents, heads = self._related(states_BWD)
        relations_BRWH: Tensor = self.relations(dependents, heads).log_softmax(1)
        return (arcs_BWH.log_softmax(-1) + relations_BRWH.amax(1)).exp()

    def _related(self, states_BWD: Tensor) -> tuple[Tensor, Tensor]:
        dependents, heads = self.as_relation
        return dependents(states_BWD), heads(self._with_root(states_BWD))

    def _with_root(self, states_BWD: Tensor) -> Tensor:
        root_B1D = self.root_D.to(states_BWD.dtype).expand(states_BWD.shape[0], 1, -1)
        return torch.cat([root_B1D, states_BWD], dim=1)


def parser_loss(
    parser: BiaffineParser,
    states_BWD: Tensor,
    arcs_BWH: Tensor,
    heads_BW: Tensor,
    relations_BW: Tensor,
    real_BW: Tensor,
    variant: Variant = "as_published",
) -> Tensor:
    """Negative log-likelihood of heads, and of relations given the right heads; a scalar.

    Published: a mean over the words whose head is not -100; 0 without any. Released (MicroBERT,
    commit d9c1e9f): the denominator is broadcast to a matrix, and the sum is divided by the number
    of sequences with such words times the number of all words of the batch.
    """
    learned_BW = heads_BW != IGNORE
    scores_BWR = parser.relate(states_BWD, heads_BW.clamp(min=0))
    relations_BW = torch.where(learned_BW, relations_BW, IGNORE)
    total = summed_loss(arcs_BWH, heads_BW) + summed_loss(scores_BWR, relations_BW)
    count = learned_BW.sum()
    if is_released(variant):
        count = learned_BW.any(1).sum() * real_BW.sum()
    return total / count.clamp(min=1)


def _projection(options: ParserOptions, width: int, size: int) -> nn.Sequential:
    activation = nn.ELU() if options.activation == "elu" else nn.LeakyReLU(0.1)
    kind = SharedDropout if options.shared_dropout else nn.Dropout
    return nn.Sequential(nn.Linear(width, size), activation, kind(options.dropout))


def _context(options: ParserOptions, width: int) -> BiLstm | HighwayLstm | WordTransformer | None:
    size, layers, dropout = (
        options.context_width,
        options.context_layers,
        options.context_dropout,
    )
    if options.context == "lstm":
        return BiLstm(width, size, layers, dropout)
    if options.context == "highway_lstm":
        return HighwayLstm(width, size, layers, dropout, options.recurrent_dropout)
    if options.context == "transformer":
        return WordTransformer(width, size, layers, options.context_heads, dropout)
    return None
