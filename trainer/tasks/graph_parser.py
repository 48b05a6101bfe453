"""``graph_parser.v1``: the graph decoder of the order-free parser (Ahmad et al. 2019).

It differs from ``dependency.v1`` in that it takes relations without subtypes, chooses trees by
heads and relations together, allows several roots, and drops whole features.

Letters in shapes: ``B`` sequences, ``W`` words, ``H`` heads: ROOT and the words, ``D`` width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from syntax.batches import IGNORE
from syntax.batches.words import WordLayout, word_values
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.dependency import AttachmentScores
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.graph_parser import (
    SYMBOLS,
    GraphParser,
    graph_energy,
    graph_loss,
    graph_trees,
)
from trainer.nn.parser_targets import TREES, WORDS, parser_targets
from trainer.nn.words import WordStates
from trainer.options.parser import ParserOptions, universal
from trainer.tasks.base import Arrays, Head, Task
from trainer.tasks.dependency import DependencyScorer, check_gold
from trainer.tasks.options import GraphParserOptions, UniversalParserOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


class UniversalParsing(Task):
    """Heads and relations of words."""

    def __init__(self, options: UniversalParserOptions, labels: Mapping[str, LabelSpec]) -> None:  # noqa: ARG002
        self.metric: str = options.metric
        self._options = options

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        parser = ParserOptions(relations=self._options.relations)
        found = parser_targets(parser, arrays, self._options.trees)
        if "parses" in arrays:
            places = {name: place for place, name in enumerate(self._options.relations)}
            values = [
                [[places.get(universal(one), IGNORE) for one in parse.deprel] for parse in own]
                for own in arrays["parses"]
            ]
            learned = found["parser_heads"] != IGNORE
            relations = word_values(arrays["word_layout"], values)
            found["parser_relations"] = np.where(learned, relations, IGNORE)
        return found

    def scorer(self, data: FeatureDataset | None) -> UniversalScorer:
        check_gold(data, self._options.trees)
        return UniversalScorer(self._options)


class UniversalParserHead(Head):
    """The base of decoders over the states of words, and of ROOT."""

    own_initial_weights = True

    options: UniversalParserOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        if not options.relations:
            raise SpecError(
                "task.relations is empty, and no training trees have filled it; name the relations "
                "that the parser may give"
            )
        self.pool = WordStates(width, "mean")
        self.root_D = nn.Parameter(torch.empty(width)) if options.root == "learned" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.root_D is not None:
            nn.init.normal_(self.root_D, std=0.02)

    def states(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        """States of ROOT and of the words. *Shape:* (B, H, D)."""
        states_BLD = encoding.last_hidden_state
        assert states_BLD is not None
        pieces_BL, sources_BW, _, _ = (batch.labels[name] for name in WORDS)
        words_BWD = self.pool(states_BLD, pieces_BL, sources_BW)
        root_B1D = states_BLD[:, :1]
        if self.root_D is not None:
            root_B1D = self.root_D.to(states_BLD.dtype).expand(len(states_BLD), 1, -1)
        return torch.cat([root_B1D, words_BWD], dim=1)


class GraphParserHead(UniversalParserHead):
    """The graph decoder."""

    options: GraphParserOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        sizes = (options.arc, options.relation, len(options.relations), options.parser_dropout)
        self.parser = GraphParser(width, *sizes)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """The loss, and in evaluation ``heads``, 0 for ROOT, and ``relations``, int64 (B, W)."""
        sentences = batch.labels["parser_sentences"]
        heads_BW, relations_BW, _ = (batch.labels[name] for name in TREES)
        projected = self.parser.project(self.states(encoding, batch))
        arcs_BWH = self.parser(projected, sentences)
        loss = graph_loss(self.parser, projected, arcs_BWH, heads_BW, relations_BW)
        if self.training:
            return HeadOutput({}, loss)
        energy_BWH = graph_energy(arcs_BWH, self.parser.relate_all(projected))
        space = self.options.mst_space
        found = (energy_BWH.cpu().numpy(), sentences.cpu().numpy())
        trees = graph_trees(*found, self.options.single_root, space)
        chosen_BW = torch.from_numpy(trees).to(arcs_BWH.device)
        types_BWR = self.parser.relate(projected, chosen_BW)[..., SYMBOLS:]
        return HeadOutput({"heads": chosen_BW, "relations": types_BWR.argmax(-1)}, loss)


@dataclass(frozen=True, slots=True)
class UniversalScores(AttachmentScores):
    """Scores of dependency trees; ``long_sentences`` counts examples too long to be scored."""

    long_sentences: int = 0


class UniversalScorer(DependencyScorer):
    """Collects trees, example by example, and counts those that are too long to be scored."""

    def __init__(self, options: UniversalParserOptions) -> None:
        super().__init__(options.relations, options.trees, options.metric)
        self._universal, self._long = options, 0

    def scores(self) -> UniversalScores:
        return UniversalScores(**asdict(super().scores()), long_sentences=self._long)

    def _of_example(
        self,
        batch: SyntaxBatch,
        layout: WordLayout,
        found: Mapping[str, NDArray[Any]],
        rows: list[int],
    ) -> Prediction:
        prediction = super()._of_example(batch, layout, found, rows)
        if not prediction.shares:
            return prediction
        parses = batch.arrays["parses"][rows[0]]
        lengths = (end - start for parse in parses for start, end in parse.word_ranges())
        if max(lengths, default=0) + 1 >= self._universal.longest:
            self._long += 1
            return replace(prediction, shares={})
        return prediction
