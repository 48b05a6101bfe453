"""How much of the trees a linear map of the states tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.trees.ud import upos_id
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.base import NamedScores
from trainer.metrics.probes import edges_of, mean_over_lengths, root_of, spearman
from trainer.options import StructuralProbeOptions, TaskOptions
from trainer.options.tasks.structural_probe import METRICS
from trainer.tasks.base import Arrays
from trainer.tasks.losses import MeanLoss

if TYPE_CHECKING:
    from featurestore import FeatureDataset


@dataclass(frozen=True, slots=True)
class ProbeScores(NamedScores):
    """Scores of a structural probe.

    Attributes:
        examples: Sentences scored.
        spearman: Rank correlation with the tree, averaged for each sentence length and then over
            the lengths from 5 to 50: for distances that of each word to all, for depths that of
            the words of a sentence.
        uuas: Share of the tree's edges, without punctuation, that the minimum spanning tree of the
            predicted distances has; None for depths.
        root_accuracy: Share of sentences whose root is predicted least deep, punctuation left
            out; None for distances.
        loss: Mean loss of the examples.
        metric: Name of the headline.
    """

    examples: int
    spearman: float
    uuas: float | None
    root_accuracy: float | None
    loss: float
    metric: str


class StructuralProbe:
    """A probe of distances or depths; it reads no labels.

    Args:
        options: Which probe, and the headline metric.
        labels: None.
    """

    stream_options: ClassVar[Mapping[str, Any]] = {}
    extras: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:  # noqa: ARG002
        assert isinstance(options, StructuralProbeOptions)
        self.metric: str = options.headline
        self._options = options

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """None: the trees are in every batch.

        Raises:
            SpecError: The batch has no such matrix.
        """
        if self._options.target not in arrays:
            raise SpecError(
                f"a probe of {self._options.target} was given batches without; probe a model that "
                "streams it, such as frozen.v1"
            )
        return {}

    def scorer(self, data: FeatureDataset) -> ProbeScorer:  # noqa: ARG002
        """A new scorer."""
        return ProbeScorer(self._options)


class ProbeScorer:
    """Scores sentence after sentence, as they come.

    Args:
        options: Which probe, and the lengths that count.
    """

    def __init__(self, options: StructuralProbeOptions) -> None:
        self._options = options
        self._found: dict[str, list[_Found]] = defaultdict(list)
        self._correlations: dict[int, list[float]] = defaultdict(list)
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        target = self._options.target
        predicted = output.logits[target].float().cpu().numpy()
        for row, words in sentences(batch):
            kept = batch.arrays["upos"][row, words] != upos_id("PUNCT")
            at = words if target == "depth" else np.ix_(words, words)
            ours, gold = predicted[row][at], batch.arrays[target][row][at].astype(float)
            self._take(batch.example_ids[row], ours, gold, kept)
        self._loss.add(output.task_loss, batch.lengths_B.new_tensor(len(batch)))

    def scores(self) -> ProbeScores:
        """The scores of everything taken."""
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
        """The edges or roots of each example's sentences; see `Scorer`."""
        metric = METRICS[self._options.target][0]
        return [_prediction(name, metric, found) for name, found in self._found.items()]

    def _take(
        self, example_id: str, ours: NDArray[Any], gold: NDArray[Any], kept: NDArray[np.bool_]
    ) -> None:
        rows = spearman(np.atleast_2d(ours), np.atleast_2d(gold))
        self._correlations[len(kept)] += rows.tolist()
        if self._options.target == "distance":
            found = _Found(edges_of(gold, kept), edges_of(ours, kept))
        else:
            found = _Found({root_of(gold, kept)} - {None}, {root_of(ours, kept)} - {None})
        self._found[example_id].append(found)


class _Found(NamedTuple):
    """Edges or roots of a sentence."""

    gold: set[Any]
    predicted: set[Any]

    @property
    def share(self) -> tuple[float, float]:
        """How many of the gold ones were found, and how many there are."""
        return float(len(self.gold & self.predicted)), float(len(self.gold))


def _share(found: Iterable[_Found]) -> tuple[float, float]:
    shares = [one.share for one in found]
    return sum(hits for hits, _ in shares), sum(total for _, total in shares)


def _prediction(example_id: str, metric: str, found: list[_Found]) -> Prediction:
    hits, total = _share(found)
    return Prediction(
        example_id,
        gold=[sorted(one.gold) for one in found],
        predicted=[sorted(one.predicted) for one in found],
        right=hits == total,
        shares={metric: (hits, total)},
    )


def sentences(batch: SyntaxBatch) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """The sentences of a batch: the row of each, and the positions of its words."""
    arrays = batch.arrays
    for row in range(len(batch)):
        owner = np.stack([arrays["segment_ids"][row], arrays["sentence_ids"][row]], axis=1)
        known = np.flatnonzero((owner >= 0).all(1))
        _, number = np.unique(owner[known], axis=0, return_inverse=True)
        for one in range(int(number.max(initial=-1)) + 1):
            yield row, known[number.reshape(-1) == one]
