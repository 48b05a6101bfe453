"""``structural_probe.v1``: how much of the trees a linear map of the states tells.

Hewitt and Manning 2019, "A Structural Probe for Finding Syntax in Word Representations"
(https://aclanthology.org/N19-1419).

Letters in shapes: ``B`` examples, ``L`` positions: words, or pieces; ``W`` words of a sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.batches import AssemblySpec
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.trees.ud import upos_id
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics import NamedScores
from trainer.metrics.probes import edges_of, mean_over_lengths, root_of, spearman
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.probes import DepthProbe, DistanceProbe
from trainer.tasks.base import Arrays, Baseline, Head, MeanLoss, Task
from trainer.tasks.options import METRICS, StructuralProbeOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


class StructuralProbe(Task):
    """A probe of distances or depths; it reads no labels."""

    def __init__(self, options: StructuralProbeOptions, labels: Mapping[str, LabelSpec]) -> None:  # noqa: ARG002
        self.metric: str = options.headline
        self._options = options

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """Check that the batches have the trees; there are no other targets."""
        if self._options.target not in arrays:
            raise SpecError(
                f"a probe of {self._options.target} was given batches without; probe a model that "
                "streams it, such as frozen.v1"
            )
        return {}

    def scorer(self, data: FeatureDataset) -> ProbeScorer:  # noqa: ARG002
        return ProbeScorer(self._options)

    def baseline(self, train: FeatureDataset) -> Baseline:  # noqa: ARG002
        """A chain of the words, each with the next: the baseline LINEAR of section 4.

        The distance of two words is how far apart they stand, and the depth of a word its position.
        """
        return Baseline("linear chain", self._score_of_chain)

    def _score_of_chain(self, data: FeatureDataset) -> float:
        target, scorer = self._options.target, ProbeScorer(self._options)
        # `where` gives the examples alone, without the states of a frozen encoder.
        assembly = AssemblySpec(
            joint_root=False, separator_edge="none", matrices=(target,), first_pieces=True
        )
        stream = data.where().stream(batch_size=64, shuffle=False, assembly=assembly)
        for arrays in stream:
            for row, words in sentences(arrays):
                place = np.arange(len(words), dtype=float)
                chain = place if target == "depth" else np.abs(place[:, None] - place)
                scorer.take(arrays["example_id"][row], chain, *_tree_of(arrays, target, row, words))
        return scorer.scores().headline


class StructuralProbeHead(Head):
    """The probe, and its L1 loss to the tree (equation 2; section 2.3 for depths).

    Squared norms are compared with distances themselves, as in the paper.
    """

    options: StructuralProbeOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        self.target = options.target
        self.probe: DistanceProbe | DepthProbe
        if options.target == "distance":
            self.probe = DistanceProbe(width, options.rank, target="as_released")
        else:
            self.probe = DepthProbe(width, options.rank)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Predicted ``distance``, *shape* (B, L, L), or ``depth``, (B, L), and the loss."""
        states_BLD = encoding.last_hidden_state
        assert states_BLD is not None
        return HeadOutput(
            {self.target: self.probe.predict(states_BLD)}, self.probe(states_BLD, batch)
        )


@dataclass(frozen=True, slots=True)
class ProbeScores(NamedScores):
    """Scores of a structural probe.

    Attributes:
        spearman: Rank correlation with the tree, averaged for each sentence length and then over
            the lengths of the options: for distances of each word to all, for depths of a sentence.
        uuas: Share of the tree's edges, without punctuation, that the minimum spanning tree of the
            predicted distances has; None for depths.
        root_accuracy: Share of sentences whose root is predicted least deep of the words that are
            not punctuation; of one whose root is punctuation no prediction is right, as in the
            authors' code. None for distances.
    """

    examples: int
    spearman: float
    uuas: float | None
    root_accuracy: float | None
    loss: float
    metric: str


class ProbeScorer:
    """Scores sentence after sentence, as they come."""

    def __init__(self, options: StructuralProbeOptions) -> None:
        self._options = options
        self._found: dict[str, list[_Found]] = defaultdict(list)
        self._correlations: dict[int, list[float]] = defaultdict(list)
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        target = self._options.target
        predicted = output.logits[target].float().cpu().numpy()
        for row, words in sentences(batch.arrays):
            at = words if target == "depth" else np.ix_(words, words)
            tree = _tree_of(batch.arrays, target, row, words)
            self.take(batch.example_ids[row], predicted[row][at], *tree)
        self._loss.add(output.task_loss, batch.lengths_B.new_tensor(len(batch)))

    def take(
        self, example_id: str, ours: NDArray[Any], gold: NDArray[Any], kept: NDArray[np.bool_]
    ) -> None:
        """Take predicted and gold distances, (W, W), or depths; punctuation is not ``kept``."""
        rows = spearman(np.atleast_2d(ours), np.atleast_2d(gold))
        self._correlations[len(kept)] += rows.tolist()
        if self._options.target == "distance":
            found = _Found(edges_of(gold, kept), edges_of(ours, kept))
        else:
            found = _Found({int(np.argmin(gold))}, {root_of(ours, kept)})
        self._found[example_id].append(found)

    def scores(self) -> ProbeScores:
        options = self._options
        found = [one for own in self._found.values() for one in own]
        hits, total = _share(found)
        share = hits / total if total else 0.0
        return ProbeScores(
            examples=len(found),
            spearman=mean_over_lengths(self._correlations, options.shortest, options.longest),
            uuas=share if options.target == "distance" else None,
            root_accuracy=share if options.target == "depth" else None,
            loss=self._loss.mean(),
            metric=options.headline,
        )

    def predictions(self) -> list[Prediction]:
        """The edges or roots of each example's sentences."""
        metric, predictions = METRICS[self._options.target][0], []
        for example_id, found in self._found.items():
            hits, total = _share(found)
            gold = [sorted(one.gold) for one in found]
            predicted = [sorted(one.predicted) for one in found]
            shares = {metric: (hits, total)}
            predictions.append(Prediction(example_id, gold, predicted, hits == total, shares))
        return predictions


class _Found(NamedTuple):
    gold: set[Any]
    predicted: set[Any]


def _share(found: Iterable[_Found]) -> tuple[float, float]:
    """Gold edges or roots that were found, and all of them."""
    pairs = list(found)
    hits = sum(len(one.gold & one.predicted) for one in pairs)
    return float(hits), float(sum(len(one.gold) for one in pairs))


def sentences(arrays: Arrays) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """The sentences of a batch: the row of each, and the positions of its words.

    Every position is a word, unless ``first_pieces`` says which pieces begin one.
    """
    for row in range(len(arrays["segment_ids"])):
        owner = np.stack([arrays["segment_ids"][row], arrays["sentence_ids"][row]], axis=1)
        is_word = (owner >= 0).all(1)
        if "first_pieces" in arrays:
            is_word &= arrays["first_pieces"][row]
        known = np.flatnonzero(is_word)
        _, number = np.unique(owner[known], axis=0, return_inverse=True)
        for one in range(int(number.max(initial=-1)) + 1):
            yield row, known[number.reshape(-1) == one]


def _tree_of(
    arrays: Arrays, target: str, row: int, words: NDArray[np.intp]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Distances or depths of a sentence, and which of its words are not punctuation."""
    at = words if target == "depth" else np.ix_(words, words)
    kept: NDArray[np.bool_] = arrays["upos"][row, words] != upos_id("PUNCT")
    return arrays[target][row][at].astype(float), kept
