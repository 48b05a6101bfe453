"""``dependency.v1``: a biaffine parser, learned from the trees of the dataset.

Letters in shapes: ``B`` sequences, ``W`` words, ``H`` heads: ROOT and the words, ``R`` relations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from syntax.batches import IGNORE
from syntax.batches.words import WordLayout
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.trees.mst import are_root, best_relations, sentence_heads
from syntax.trees.parse import Parse
from syntax.trees.ud import UPOS
from syntax.variant import is_released
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.dependency import (
    NOT_ATTACHED,
    AttachmentScores,
    ParsedWord,
    attachment_scores,
    attachment_shares,
)
from trainer.models.outputs import HeadOutput, SyntaxEncoding, layers_of
from trainer.nn.biaffine import mean_loss
from trainer.nn.parser import BiaffineParser, Words, parser_loss
from trainer.nn.parser_targets import TREES, WORDS, further_words, parser_targets
from trainer.options.parser import Trees
from trainer.tasks.base import Arrays, Baseline, Head, MeanLoss, Task
from trainer.tasks.options import DependencyOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


@dataclass(frozen=True, slots=True)
class NeighbourHeads:
    """The word ``step`` further (-1 or 1) as head of each; the last on that side is the root."""

    step: int
    relation: str

    @classmethod
    def of(cls, trees: Iterable[Parse]) -> NeighbourHeads:
        """The side on which more words of the trees have their head, and the relation of most.

        Of equal counts, the word before, and the first relation in the alphabet.
        """
        found = {-1: Counter[str](), 1: Counter[str]()}
        for parse in trees:
            steps = parse.parents() - np.arange(parse.word_count)
            for head, step, name in zip(parse.head, steps.tolist(), parse.deprel, strict=True):
                if head and step in found and name is not None:
                    found[step][name] += 1
        step = max((-1, 1), key=lambda side: found[side].total())
        ranked = sorted(found[step].items(), key=lambda one: (-one[1], one[0]))
        return cls(step, ranked[0][0] if ranked else "dep")

    @property
    def name(self) -> str:
        return f"the {'previous' if self.step < 0 else 'next'} word as head"

    def words(self, parse: Parse) -> Iterator[ParsedWord]:
        sentences, gold = parse.sentence_ids(), parse.parents().tolist()
        for word in range(parse.word_count):
            head = word + self.step
            if not 0 <= head < parse.word_count or sentences[head] != sentences[word]:
                head = -1
            relation = self.relation if head >= 0 else "root"
            yield ParsedWord(gold[word], head, parse.deprel[word], relation, parse.upos[word])


def check_gold(data: FeatureDataset | None, trees: Trees) -> None:
    from featurestore import ParsedDataset

    if trees == "gold" and isinstance(data, ParsedDataset) and not data.has_gold:
        raise SpecError(
            f"{data.name} {data.spec.split} has no gold trees to score by; backfill it with "
            "`--mode gold`, or compare with those of a parser, with task.trees=all"
        )


class Dependency(Task):
    """Heads and relations of words."""

    def __init__(self, options: DependencyOptions, labels: Mapping[str, LabelSpec]) -> None:  # noqa: ARG002
        self.metric: str = options.metric
        self._options = options

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        return parser_targets(self._options.parser, arrays, self._options.trees)

    def scorer(self, data: FeatureDataset | None) -> DependencyScorer:
        options = self._options
        check_gold(data, options.trees)
        return DependencyScorer(options.parser.relations, options.trees, options.metric)

    def baseline(self, train: FeatureDataset) -> Baseline:
        heads = NeighbourHeads.of(parse for own in self._trees(train) for parse in own)

        def score(data: FeatureDataset) -> float:
            shares = [
                attachment_shares(word for parse in own for word in heads.words(parse))
                for own in self._trees(data)
            ]
            return attachment_scores(shares, 0.0, self.metric).headline

        return Baseline(heads.name, score)

    def _trees(self, data: FeatureDataset) -> Iterator[tuple[Parse, ...]]:
        from featurestore import ParsedDataset

        assert isinstance(data, ParsedDataset)
        return data.parses(self._options.trees == "gold")


class DependencyHead(Head):
    """The parser, and a linear map to universal tags where they are asked for."""

    options: DependencyOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options, stock = self.options, config.encoder_config()
        if options.parser.states != "last":
            self.needs, width = frozenset({"hidden_states"}), int(stock.hidden_size)
        layers = config.state_count(options.parser.states)
        self.parser = BiaffineParser(options.parser, width, layers)
        self.dropout = nn.Dropout(config.model_options().dropout)
        self.tagger = nn.Linear(self.parser.width, len(UPOS)) if options.upos else None

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """The loss; in evaluation ``heads`` (0 is ROOT), ``relations``, ``upos``: int64 (B, W)."""
        words = Words(*(batch.labels[name] for name in WORDS))
        further = further_words(self.options.parser)
        words = words._replace(**{field: batch.labels[name] for field, name in further.items()})
        heads_BW, relations_BW, upos_BW = (batch.labels[name] for name in TREES)
        layers = layers_of(encoding, self.options.parser.states)
        states_BWD = self.parser.states(layers, words)
        arcs_BWH = self.parser(states_BWD, words.sentences)
        real_BW = words.sentences >= 0
        loss = parser_loss(self.parser, states_BWD, arcs_BWH, heads_BW, relations_BW, real_BW)
        tags_BWT = None if self.tagger is None else self.tagger(self.dropout(states_BWD)).float()
        if tags_BWT is not None:
            loss = loss + mean_loss(tags_BWT, upos_BW)
        found = {} if self.training else self._decoded(states_BWD, arcs_BWH, words.sentences)
        if tags_BWT is not None and not self.training:
            found["upos"] = 1 + tags_BWT[..., 1:].argmax(-1)
        return HeadOutput(found, loss)

    def _decoded(
        self, states_BWD: Tensor, arcs_BWH: Tensor, sentences_BW: Tensor
    ) -> dict[str, Tensor]:
        heads_BW = arcs_BWH.argmax(-1)
        if self.options.decoding == "mst":
            scores_BWH = arcs_BWH
            if is_released(self.options.mst_space):
                scores_BWH = self.parser.probabilities(states_BWD, arcs_BWH)
            rows = zip(scores_BWH.cpu().numpy(), sentences_BW.cpu().numpy(), strict=True)
            found = [sentence_heads(*row, self.options.single_root) for row in rows]
            heads_BW = torch.from_numpy(np.stack(found)).long().to(arcs_BWH.device)
        return {"heads": heads_BW, "relations": self._relations(states_BWD, heads_BW)}

    def _relations(self, states_BWD: Tensor, heads_BW: Tensor) -> Tensor:
        """The best relation of each word, as a served parser gives it (`service.parsers.words`)."""
        scores_BWR = self.parser.relate(states_BWD, heads_BW)
        if self.options.decoding == "greedy" or not self.options.single_root:
            return scores_BWR.argmax(-1)
        known, at_root = are_root(self.options.parser.relations), (heads_BW == 0).cpu().numpy()
        best = best_relations(scores_BWR.float().cpu().numpy(), at_root, known)
        return torch.from_numpy(best).to(heads_BW.device)


class _Text(NamedTuple):
    """A model's analysis of the words of a text; heads are -1 for a root, -2 for none."""

    heads: NDArray[np.int64]
    relations: list[str | None]
    upos: list[str | None]

    @classmethod
    def of(cls, words: int) -> _Text:
        return cls(np.full(words, NOT_ATTACHED), [None] * words, [None] * words)


class DependencyScorer:
    """Collects trees, example by example.

    A model gives heads, 0 for ROOT, i for the i-th word of the sequence and -1 for none, and
    relations. The loss is a mean over the heads to learn, which ``learned`` names.
    """

    def __init__(
        self,
        relations: Sequence[str],
        trees: Trees,
        metric: str = "las",
        learned: str = "parser_heads",
    ) -> None:
        self._relations, self._trees, self._metric = relations, trees, metric
        self._learned = learned
        self._predictions: list[Prediction] = []
        self._cut = self._pieceless = 0
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        found = {name: of.cpu().numpy() for name, of in output.logits.items()}
        layout: WordLayout = batch.arrays["word_layout"]
        rows = batch.arrays.get("example_index", np.arange(len(batch)))
        for example in np.unique(rows).tolist():
            mine = np.flatnonzero(rows == example).tolist()
            self._predictions.append(self._of_example(batch, layout, found, mine))
        self._loss.add(output.task_loss, (batch.labels[self._learned] != IGNORE).sum())

    def scores(self) -> AttachmentScores:
        return attachment_scores(
            [one.shares for one in self._predictions if one.shares],
            self._loss.mean(),
            self._metric,
            self._cut,
            self._pieceless,
        )

    def predictions(self) -> list[Prediction]:
        """Head and relation of each word; heads are CoNLL-U's, or the text's if it has no parse."""
        return self._predictions

    def _of_example(
        self,
        batch: SyntaxBatch,
        layout: WordLayout,
        found: Mapping[str, NDArray[Any]],
        rows: list[int],
    ) -> Prediction:
        arrays, name = batch.arrays, batch.example_ids[rows[0]]
        parses = arrays["parses"][rows[0]] if "parses" in arrays else None
        texts = _empty_texts(layout, rows, parses)
        for places_BW in _passes(layout, arrays):
            for row in rows:
                self._take(texts, layout, found, row, np.flatnonzero(places_BW[row]).tolist())
        if parses is None:
            return Prediction(name, None, _shown(texts, [None] * len(texts)))
        predicted = _shown(texts, parses)
        if self._trees == "gold" and not arrays["is_gold"][rows[0]]:
            return Prediction(name, None, predicted)
        words = [word for pair in zip(texts, parses, strict=True) for word in _compared(*pair)]
        self._cut += sum(word.head == NOT_ATTACHED for word in words)
        named = np.stack([layout.segments, layout.words], axis=2)[rows]
        self._pieceless += len(np.unique(named[layout.pieceless[rows]], axis=0))
        right = [_Text(one.parents().astype(np.int64), one.deprel, one.upos) for one in parses]
        gold = _shown(right, parses)
        shares = attachment_shares(words, tagged="upos" in found)
        return Prediction(name, gold, predicted, gold == predicted, shares)

    def _take(
        self,
        texts: list[_Text],
        layout: WordLayout,
        found: Mapping[str, NDArray[Any]],
        row: int,
        places: Sequence[int],
    ) -> None:
        for place in places:
            text, word = texts[layout.segments[row, place]], int(layout.words[row, place])
            head = int(found["heads"][row, place])
            if head < 0:
                continue
            text.heads[word] = layout.words[row, head - 1] if head else -1
            text.relations[word] = self._relations[found["relations"][row, place]]
            if "upos" in found:
                text.upos[word] = UPOS[found["upos"][row, place]]


def _passes(layout: WordLayout, arrays: Arrays) -> list[NDArray[np.bool_]]:
    """Words of each sequence in the order of taking; what is taken later replaces the earlier.

    So a word that several windows show is scored once: by the one with most context, or better by
    one with the whole sentence. *Shape:* (B, W) each.
    """
    shown_BW = layout.words >= 0
    if "is_max_context" not in arrays:
        return [shown_BW]
    central_BW = np.zeros_like(shown_BW)
    rows, at = np.nonzero(arrays["is_max_context"] & (layout.pieces >= 0))
    central_BW[rows, layout.pieces[rows, at]] = True
    whole_BW = layout.whole & shown_BW
    return [shown_BW, central_BW, whole_BW, whole_BW & central_BW]


def _empty_texts(
    layout: WordLayout, rows: list[int], parses: tuple[Parse, ...] | None
) -> list[_Text]:
    if parses is not None:
        return [_Text.of(parse.word_count) for parse in parses]
    segments, words = layout.segments[rows], layout.words[rows]
    return [
        _Text.of(int(words[segments == segment].max(initial=-1)) + 1)
        for segment in range(int(segments.max(initial=0)) + 1)
    ]


def _compared(text: _Text, parse: Parse) -> Iterator[ParsedWord]:
    columns = (parse.parents().tolist(), text.heads.tolist(), parse.deprel, text.relations)
    for values in zip(*columns, parse.upos, text.upos, strict=True):
        yield ParsedWord(*values)


def _shown(texts: Sequence[_Text], parses: Sequence[Parse | None]) -> list[list[Any]]:
    """Head and relation of each word, as plain JSON; a head of None where there is none."""
    found: list[list[Any]] = []
    for text, parse in zip(texts, parses, strict=True):
        starts = np.zeros(len(text.heads), np.int64)
        if parse is not None and parse.word_count:
            starts = np.asarray(parse.sentence_first_word)[parse.sentence_ids()]
        heads = np.where(text.heads >= 0, text.heads - starts, text.heads) + 1
        shown = [None if head < 0 else head for head in heads.tolist()]
        found += [list(pair) for pair in zip(shown, text.relations, strict=True)]
    return found
