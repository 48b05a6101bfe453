"""One encoder and the heads of all of UD's columns.

The encoder reads the pieces of a window of text. A linear layer finds the ends of tokens and
sentences. The mean of a token's pieces chooses its script of words; the mean of a word's pieces,
plus a vector of its place in the token, is its state, from which its tags and its lemma's script
are chosen, and by a biaffine score (Dozat and Manning 2017, equations 6 to 9) its head and its
relation.

Letters in shapes: ``B`` windows, ``L`` pieces, ``T`` tokens, ``W`` words of all windows, ``S``
sentences, ``N`` words of the longest sentence, ``H`` heads: ROOT and N words, ``D`` width of the
encoder, ``A`` and ``R`` width of states for arcs and relations, ``C`` classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.errors import SpecError
from syntax.parsing.pieces import SENTENCE_END, SURFACES
from trainer.parsing.labels import Labels
from trainer.parsing.quantization import replace_linear, share_bounds

PLACES: Final = 4
"""Places of words in a token that have a vector; those behind share the last one."""

_NOWHERE: Final = -1e4


@dataclass(frozen=True)
class Sizes:
    """Widths of the heads.

    Attributes:
        hidden: Of the layers before the tags and before the lemmas.
        arc, relation: Of the states of words as dependents and as heads.
        dropout: Before and after those layers.
    """

    hidden: int = 256
    arc: int = 256
    relation: int = 96
    dropout: float = 0.2


@dataclass(frozen=True)
class Batch:
    """Windows of similar length, and the words of all of them in order.

    Attributes:
        ids, surface, mask: Of pieces; the mask is True on pieces. *Shape:* (B, L).
        boundary: Class of each piece, -100 for none. *Shape:* (B, L).
        tokens, words: Window, first and last piece of each. *Shape:* (T, 3) and (W, 3).
        split: Class of each token. *Shape:* (T,).
        index, tags: As in `trainer.parsing.corpus.GoldSentence`. *Shape:* (W,).
        places: Number of each sentence's words among all, -1 on padding. *Shape:* (S, N).
        head: Head of each word in its sentence, 0 for ROOT, -100 on padding. *Shape:* (S, N).
    """

    ids: Tensor
    surface: Tensor
    mask: Tensor
    boundary: Tensor
    tokens: Tensor
    split: Tensor
    words: Tensor
    index: Tensor
    places: Tensor
    head: Tensor
    tags: Mapping[str, Tensor]


class TextParser(nn.Module):
    """The parser of running text; its encoder is a model of `transformers` with BERT's layers."""

    def __init__(self, encoder: Any, labels: Labels, sizes: Sizes) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder, self.sizes = encoder, sizes
        self.surface = nn.Embedding(SURFACES, width)
        self.place = nn.Embedding(PLACES, width)
        nn.init.normal_(self.surface.weight, std=0.01)
        nn.init.zeros_(self.place.weight)
        self.hidden = nn.ModuleDict(
            {name: nn.Linear(width, sizes.hidden) for name in ("tags", "lemma")}
        )
        self.tags = nn.ModuleDict(
            {column: nn.Linear(sizes.hidden, len(names)) for column, names in labels.tags.items()}
        )
        self.root = nn.Parameter(torch.randn(width) * 0.02)
        self.arc_dependent = nn.Linear(width, sizes.arc)
        self.arc_head = nn.Linear(width, sizes.arc)
        self.arc = nn.Linear(sizes.arc, sizes.arc)
        self.relation_dependent = nn.Linear(width, sizes.relation)
        self.relation_head = nn.Linear(width, sizes.relation)
        self.relation = nn.Linear(sizes.relation, len(labels.deprel) * (sizes.relation + 1))
        nn.init.zeros_(self.arc.weight)
        self.dropout = nn.Dropout(sizes.dropout)
        replace_linear(self)
        for layer in encoder.encoder.layer:
            attention = layer.attention.self
            share_bounds(attention.query, attention.key, attention.value)
        # A few classes of each piece: exact, and so linear that means may be taken after it.
        self.boundary = nn.Linear(2 * width, SENTENCE_END + 1)
        self.split = nn.Linear(width, len(labels.split))

    def forward(self, batch: Batch) -> dict[str, tuple[Tensor, Tensor]]:
        """Scores and classes of each part, -100 for none. *Shape:* (..., C) and (...)."""
        states_BLD = self.encode(batch.ids, batch.surface, batch.mask)
        spans = torch.cat([batch.tokens, batch.words])
        pooled = self.dropout(mean_pieces(states_BLD, spans))
        tokens_TD, words_WD = pooled.split([len(batch.tokens), len(batch.words)])
        words_WD = words_WD + self.place(batch.index.clamp(max=PLACES - 1))
        known = torch.cat([self.root[None], words_WD])
        return {
            "boundary": (self.boundaries(states_BLD), batch.boundary),
            "split": (self.split(tokens_TD), batch.split),
            "head": (self._arcs(known, batch.places), batch.head),
            "deprel": (self._gold_relations(known, batch), batch.tags["deprel"]),
            **{
                column: (scores_WC, batch.tags[column])
                for column, scores_WC in self.tag_scores(words_WD).items()
            },
        }

    def encode(self, ids_BL: Tensor, surface_BL: Tensor, mask_BL: Tensor) -> Tensor:
        """States of pieces. *Shape:* (B, L, D)."""
        words = self.encoder.get_input_embeddings()
        embedded = words(ids_BL) + self.surface(surface_BL)
        read = self.encoder(inputs_embeds=embedded, attention_mask=mask_BL)
        states_BLD: Tensor = read.last_hidden_state
        return states_BLD

    def boundaries(self, states_BLD: Tensor) -> Tensor:
        """Scores of each piece's boundary, seen with the next piece. *Shape:* (B, L, C)."""
        after_BLD = F.pad(states_BLD[:, 1:], (0, 0, 0, 1))
        scores_BLC: Tensor = self.boundary(self.dropout(torch.cat([states_BLD, after_BLD], dim=2)))
        return scores_BLC

    def tag_scores(self, words_WD: Tensor) -> dict[str, Tensor]:
        """Scores of each column's classes. *Shape:* (W, C)."""
        hidden = {
            name: self.dropout(F.gelu(layer(words_WD))) for name, layer in self.hidden.items()
        }
        return {
            column: layer(hidden["lemma" if column == "lemma" else "tags"])
            for column, layer in self.tags.items()
        }

    def arc_states(self, words_WD: Tensor) -> tuple[Tensor, Tensor]:
        """States whose dot products score dependents and heads. *Shape:* (W, A) each."""
        dependents = self.dropout(F.gelu(self.arc_dependent(words_WD)))
        heads = self.dropout(F.gelu(self.arc_head(words_WD)))
        return self.arc(dependents), heads

    def relation_scores(self, dependents_WR: Tensor, heads_WR: Tensor) -> Tensor:
        """Scores of relations of words with one head each. *Shape:* (W, C)."""
        weights = self.relation(dependents_WR).unflatten(1, (-1, self.sizes.relation + 1))
        return torch.einsum("wcr,wr->wc", weights, F.pad(heads_WR, (0, 1), value=1.0))

    def relation_states(self, words_WD: Tensor) -> tuple[Tensor, Tensor]:
        """States of words as dependents and as heads of relations. *Shape:* (W, R) each."""
        dependents = self.dropout(F.gelu(self.relation_dependent(words_WD)))
        return dependents, self.dropout(F.gelu(self.relation_head(words_WD)))

    def _arcs(self, known: Tensor, places_SN: Tensor) -> Tensor:
        """Scores of heads within each sentence, of ROOT and all words. *Shape:* (S, N, H)."""
        dependents, heads = self.arc_states(known)
        at_SN = (places_SN + 1).clamp(min=0)
        at_SH = F.pad(at_SN, (1, 0))
        scores_SNH = dependents[at_SN] @ heads[at_SH].transpose(1, 2)
        is_none_SH = F.pad(places_SN < 0, (1, 0))
        eye_NN = torch.eye(places_SN.shape[1], dtype=torch.bool, device=scores_SNH.device)
        itself_NH = F.pad(eye_NN, (1, 0))
        return scores_SNH.masked_fill(is_none_SH[:, None] | itself_NH, _NOWHERE)

    def _gold_relations(self, known: Tensor, batch: Batch) -> Tensor:
        """Scores of relations with the treebank's heads. *Shape:* (W, C)."""
        dependents_WR, heads_WR = self.relation_states(known)
        at_SH = F.pad((batch.places + 1).clamp(min=0), (1, 0))
        is_word_SN = batch.places >= 0
        head_W = at_SH.gather(1, batch.head.clamp(min=0))[is_word_SN]
        return self.relation_scores(dependents_WR[1:], heads_WR[head_W])


def positions(config: Any) -> int:
    """Pieces that an encoder has positions for; RoBERTa's begin behind the padding's."""
    return int(config.max_position_embeddings) - first_position(config)


def first_position(config: Any) -> int:
    """The first position that is used."""
    if config.model_type == "bert":
        return 0
    if config.model_type in ("roberta", "xlm-roberta"):
        return int(config.pad_token_id) + 1
    raise SpecError(
        f"an encoder of the type {config.model_type!r} cannot be exported; use one of bert, "
        "roberta or xlm-roberta"
    )


def mean_pieces(states_BLD: Tensor, spans: Tensor) -> Tensor:
    """Mean of the pieces of each span (window, first, last). *Shape:* (spans, D)."""
    window, first, last = spans.T
    sums = F.pad(states_BLD.float().cumsum(1), (0, 0, 1, 0))
    counts = (last - first + 1)[:, None]
    means: Tensor = (sums[window, last + 1] - sums[window, first]) / counts
    return means
