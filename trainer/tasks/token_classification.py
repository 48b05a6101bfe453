"""``token_classification.v1``: one class for each token, such as named entities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from syntax.batches import IGNORE
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.entities import Reader, entities, tokens_tagged
from trainer.metrics.tagging import TaggingScores, tagging_scores, tagging_shares
from trainer.models.outputs import HeadOutput, SyntaxEncoding, layers_of
from trainer.nn.tagger import Tokens, TokenTagger
from trainer.options.parser import LINEAR
from trainer.tasks.base import Arrays, Baseline, Head, MeanLoss, Task
from trainer.tasks.options import TokenClassificationOptions
from trainer.tasks.tokens import (
    STREAM_OPTIONS,
    TagLexicon,
    TokenTags,
    example_ids,
    piece_loss,
    tagged_tokens,
    token_arrays,
)

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


class TokenClassification(Task):
    """Tagging of the tokens of the first segment."""

    stream_options: ClassVar[Mapping[str, Any]] = STREAM_OPTIONS

    def __init__(
        self, options: TokenClassificationOptions, labels: Mapping[str, LabelSpec]
    ) -> None:
        self.metric: str = options.metric
        self._tags = TokenTags(labels[options.label], options.pieces, options.word_labels)
        self._read = _reader(options, self._tags.label)
        self._tagger = options.tagger
        if self._tagger.crf != "none" and "O" not in self._tags.label.names:
            raise SpecError(
                f"task.tagger.crf is {self._tagger.crf!r}, and the tags of "
                f"{self._tags.label.name!r} spell no entities: "
                f"{', '.join(self._tags.label.names)}; set task.tagger.crf=none"
            )

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """The labels of pieces, (B, L), int64; for a tagger of tokens its tokens, too."""
        label, tags = self._tags.label, self._tags.targets(arrays)
        if self._tagger == LINEAR:
            return {label.name: tags}
        bioul = self._tagger.crf == "bioul"
        return {label.name: tags, **token_arrays(arrays, tags, label.names, bioul)}

    def scorer(self, data: FeatureDataset) -> TaggingScorer:  # noqa: ARG002
        return TaggingScorer(self._tags, self.metric, self._read)

    def baseline(self, train: FeatureDataset) -> Baseline:
        lexicon = TagLexicon.of(train, self._tags.label)

        def score(data: FeatureDataset) -> float:
            pairs = [
                (tags, lexicon.tag(forms)) for forms, tags in tagged_tokens(data, lexicon.label)
            ]
            return tagging_scores(pairs, 0.0, self.metric, self._read).headline

        return Baseline("most frequent tag per form", score)


def _reader(options: TokenClassificationOptions, label: LabelSpec) -> Reader:
    """The reader of entities: of the spans that tags spell, or each token of one tag."""
    positive = options.positive
    if positive is None:
        if options.metric != "accuracy" and "O" not in label.names:
            raise SpecError(
                f"task.metric is {options.metric}, of entities, and the tags of {label.name!r} "
                f"spell none: {', '.join(label.names)}; set task.positive to the tag that is to be "
                "found, or task.metric=accuracy"
            )
        return entities
    if positive not in label.names:
        raise SpecError(
            f"task.positive is {positive!r}; the label {label.name!r} has the tags "
            f"{', '.join(label.names)}"
        )
    return tokens_tagged(positive)


class TokenClassificationHead(Head):
    """Dropout and one linear map at every position, or a `trainer.nn.tagger.TokenTagger`."""

    options: TokenClassificationOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        self.label, dropout = options.label, config.model_options().dropout
        names, stock = config.classes[self.label], config.encoder_config()
        self.tagger, self.states = None, options.tagger.states
        if options.tagger != LINEAR:
            layers = config.state_count(self.states)
            if self.states != "last":
                self.needs, width = frozenset({"hidden_states"}), int(stock.hidden_size)
            self.tagger = TokenTagger(options.tagger, width, layers, names, dropout)
            return
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, len(names))

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (B, L, classes), and the loss."""
        if self.tagger is not None:
            layers = layers_of(encoding, self.states)
            tokens = Tokens(*(batch.labels[f"token_{name}"] for name in Tokens._fields))
            logits_BLC, loss = self.tagger(layers, tokens)
            return HeadOutput({self.label: logits_BLC}, loss)
        logits_BLC = self.output(self.dropout(encoding.last_hidden_state)).float()
        return HeadOutput({self.label: logits_BLC}, piece_loss(logits_BLC, batch, self.label))


class TaggingScorer:
    """Collects tags of tokens, batch by batch."""

    def __init__(self, tags: TokenTags, metric: str = "f1", read: Reader = entities) -> None:
        self._tags, self._metric, self._read = tags, metric, read
        self._ids: list[str] = []
        self._pairs: list[tuple[list[str], list[str]]] = []
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        name = self._tags.label.name
        predicted_BL = output.logits[name].argmax(-1).cpu().numpy()
        self._ids += example_ids(batch.arrays)
        self._pairs += self._tags.pairs(batch.arrays, predicted_BL)
        self._loss.add(output.task_loss, (batch.labels[name] != IGNORE).sum())

    def scores(self) -> TaggingScores:
        tagged = [pair for pair in self._pairs if pair[0]]
        return tagging_scores(tagged, self._loss.mean(), self._metric, self._read)

    def predictions(self) -> list[Prediction]:
        predictions = []
        for example_id, (gold, predicted) in zip(self._ids, self._pairs, strict=True):
            if not gold:
                predictions.append(Prediction(example_id, None, predicted))
                continue
            shares = tagging_shares(gold, predicted, self._read)
            predictions.append(Prediction(example_id, gold, predicted, gold == predicted, shares))
        return predictions
