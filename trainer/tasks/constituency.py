"""``constituency.v1``: a CRF parser of constituents, learned from spans of the dataset.

Letters in shapes: ``B`` sequences, ``T`` tokens, ``S`` stretches of a tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from syntax.batches import IGNORE, locate_spans
from syntax.batches.answers import INSIDE
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.options import check_range
from syntax.trees.constituents import Constituent, ConstituentTree, binarised, unbinarised
from syntax.trees.evalb import BracketCounts, bracket_counts, bracket_shares, mean_shares
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.constituency import BracketScores
from trainer.models.outputs import HeadOutput, SyntaxEncoding, layers_of
from trainer.nn.context import BiLstm
from trainer.nn.span_parser import SpanParser, best_trees, span_loss
from trainer.nn.words import ScalarMix, WordStates
from trainer.tasks.base import Arrays, Head, MeanLoss, Task
from trainer.tasks.options import ConstituencyOptions, stored_trees
from trainer.tasks.tokens import STREAM_OPTIONS, token_arrays

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig

PIECES: Final = "token_pieces"
PLACES: Final = "token_places"
STRETCHES: Final = "constituency_stretches"


class Constituency(Task):
    """The constituents of the tokens of the first segment."""

    stream_options: ClassVar[Mapping[str, Any]] = STREAM_OPTIONS

    def __init__(self, options: ConstituencyOptions, labels: Mapping[str, LabelSpec]) -> None:
        self.metric: str = options.metric
        self._options = options
        self._names = labels[options.label].names
        for name, kind in ((options.label, "spans"), (options.tags, "tags")):
            if labels[name].kind != kind or not labels[name].names:
                raise SpecError(
                    f"the label {name!r} is of kind {labels[name].kind!r} with "
                    f"{len(labels[name].names)} names; {options.name} needs {kind!r} with names, "
                    "as the reader `brackets` gives them"
                )

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """Tokens (`trainer.nn.tagger.Tokens`), and start, end and label of stretches, (B, S, 3).

        -100 fills what is behind the last stretch, and a sentence of which a token has no piece.
        """
        nothing = np.full(arrays["token_ids"].shape, IGNORE, np.int64)
        tokens = token_arrays(arrays, nothing, (), bioul=False)
        known = {name: place for place, name in enumerate(self._options.labels)}
        places = tokens[PLACES]
        stretches = np.full((len(places), 2 * places.shape[1] - 1, 3), IGNORE, np.int64)
        for row, constituents in self._constituents(arrays, places).items():
            tree = binarised(int((places[row] >= 0).sum()), constituents)
            stretches[row, : len(tree)] = [
                (start, end, known.get(label, IGNORE)) for label, start, end in tree
            ]
        return {PIECES: tokens[PIECES], PLACES: places, STRETCHES: stretches}

    def scorer(self, data: FeatureDataset) -> ConstituencyScorer:
        return ConstituencyScorer(self._options, data)

    def _constituents(
        self, arrays: Arrays, places: NDArray[np.int64]
    ) -> dict[int, list[Constituent]]:
        """The constituents, over tokens, of each row that shows a labelled sentence whole."""
        options, shown = self._options, (places >= 0).sum(1)
        if options.label not in arrays:
            return {}
        counts = [len(tags) for tags in arrays[options.tags]]
        whole = {row for row in range(len(shown)) if 0 < shown[row] == counts[row]}
        found: dict[int, list[Constituent]] = {row: [] for row in whole}
        for row, _, label, start, end, state in zip(
            *(of.tolist() for of in locate_spans(arrays, arrays[options.label])), strict=True
        ):
            if row in whole and state == INSIDE:
                first, last = (int(arrays["token_ids"][row, at]) for at in (start, end - 1))
                found[row].append(Constituent(self._names[label], first, last + 1))
        return found


class ConstituencyHead(Head):
    """The parser, over an LSTM or the words' states themselves."""

    options: ConstituencyOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options, stock = self.options, config.encoder_config()
        if not options.labels:
            raise SpecError(
                "task.labels is empty, and no training trees have filled it; name the labels that "
                "the parser may give"
            )
        self.mix = self.lstm = None
        if options.states != "last":
            self.needs, width = frozenset({"hidden_states"}), int(stock.hidden_size)
            count = config.state_count(options.states)
            check_range("task.mixed_layers", options.mixed_layers or count, 1, count)
            self.mix = ScalarMix(options.mixed_layers or count)
        self.pool = WordStates(width, options.pieces)
        if options.lstm_layers:
            self.lstm = BiLstm(width, options.lstm_width, options.lstm_layers, options.dropout)
            width = self.lstm.width
        self.dropout = nn.Dropout(options.dropout)
        sizes = (options.span, options.label_width, len(options.labels))
        self.parser = SpanParser(width, *sizes, options.dropout)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """The loss; in evaluation ``stretches``: start, end and label of each, int64 (B, S, 3).

        -1 behind the last stretch; ends are places among the tokens that the sequence shows.
        """
        layers = layers_of(encoding, self.options.states)
        states_BLD = layers[-1]
        if self.mix is not None:
            states_BLD = self.mix(layers[-len(self.mix.weights_K) :])
        real_BT = batch.labels[PLACES] >= 0
        sources_BT = torch.arange(real_BT.shape[1], device=real_BT.device).expand_as(real_BT)
        states_BTD = self.pool(states_BLD, batch.labels[PIECES], sources_BT)
        if self.lstm is not None:
            states_BTD = self.lstm(states_BTD, real_BT)
        states_BFD = self.parser.boundaries(self.dropout(states_BTD), real_BT)
        scores_BFF = self.parser(states_BFD)
        lengths_B = real_BT.sum(1)
        loss = span_loss(self.parser, states_BFD, scores_BFF, lengths_B, batch.labels[STRETCHES])
        found = {} if self.training else self._decoded(states_BFD, scores_BFF, lengths_B)
        return HeadOutput(found, loss)

    def _decoded(
        self, states_BFD: Tensor, scores_BFF: Tensor, lengths_B: Tensor
    ) -> dict[str, Tensor]:
        trees = best_trees(scores_BFF, lengths_B)
        ends_BS2 = nn.utils.rnn.pad_sequence(
            [torch.tensor(tree).view(-1, 2) for tree in trees], True, -1
        ).to(scores_BFF.device)
        starts_BS, ends_BS = ends_BS2.clamp(min=0).unbind(2)
        labels_BS1 = self.parser.label(states_BFD, starts_BS, ends_BS).argmax(2, keepdim=True)
        return {"stretches": torch.cat([ends_BS2, labels_BS1], 2)}


class ConstituencyScorer:
    """Collects trees, example by example; the gold ones are those of the dataset."""

    def __init__(self, options: ConstituencyOptions, data: FeatureDataset) -> None:
        self._options = options
        trees = [*stored_trees(data, options.label, options.tags)]
        self._gold = dict(trees)
        if len(self._gold) < len(trees):
            raise SpecError(
                f"{data.name} {data.spec.split} has the same ids in {', '.join(data.langs)}; score "
                "one language at a time"
            )
        self._predictions: list[Prediction] = []
        self._skipped = self._cut = 0
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        stretches = output.logits["stretches"].cpu().numpy()
        arrays, places = batch.arrays, batch.labels[PLACES].cpu().numpy()
        rows = arrays.get("example_index", np.arange(len(batch)))
        _, first = np.unique(rows, return_index=True)
        for row in first.tolist():
            tokens = arrays["token_ids"][row, places[row][places[row] >= 0]]
            self._take(batch.example_ids[row], stretches[row], tokens)
        self._loss.add(output.task_loss, (batch.labels[STRETCHES][:, :, 0] != IGNORE).sum())

    def scores(self) -> BracketScores:
        shares = [one.shares for one in self._predictions if one.shares]
        return BracketScores(
            examples=len(shares),
            **mean_shares(shares),
            skipped=self._skipped,
            cut_sentences=self._cut,
            loss=self._loss.mean(),
            metric=self._options.metric,
        )

    def predictions(self) -> list[Prediction]:
        """Label, first word and end of each constituent, the outer before the inner."""
        return self._predictions

    def _take(
        self, example_id: str, stretches: NDArray[np.int64], tokens: NDArray[np.int32]
    ) -> None:
        """The tree of a sequence that shows these tokens of its example."""
        names = self._options.labels
        found = unbinarised(
            Constituent(names[label], int(tokens[start]), int(tokens[end - 1]) + 1)
            for start, end, label in stretches.tolist()
            if start >= 0
        )
        gold, predicted = self._gold[example_id], [list(one) for one in found]
        if gold is None:
            self._predictions.append(Prediction(example_id, None, predicted))
            return
        self._cut += len(tokens) < len(gold.words)
        counts = bracket_counts(gold, ConstituentTree(gold.words, gold.tags, found))
        shares = bracket_shares(counts) if isinstance(counts, BracketCounts) else {}
        self._skipped += counts == "skipped"
        wanted = [list(one) for one in gold.constituents]
        right = wanted == predicted
        self._predictions.append(Prediction(example_id, wanted, predicted, right, shares))
