"""How much of the trees a linear map of the states tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.ud import upos_id
from trainer.batch import SyntaxBatch
from trainer.metrics.probes import is_root_right, mean_over_lengths, right_edges, spearman
from trainer.options import StructuralProbeOptions, TaskOptions
from trainer.tasks.base import Arrays
from trainer.tasks.losses import MeanLoss

if TYPE_CHECKING:
    from featurestore import FeatureDataset


@dataclass(frozen=True, slots=True)
class ProbeScores:
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

    @property
    def headline(self) -> float:
        """The metric that models are selected on."""
        value: float = getattr(self, self.metric)
        return value

    def to_json(self) -> dict[str, Any]:
        """Every number by name."""
        return asdict(self)


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
        self._sentences = self._hits = self._total = 0
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
            self._take(ours, gold, kept)
        self._loss.add(output.task_loss, batch.lengths_B.new_tensor(len(batch)))

    def scores(self) -> ProbeScores:
        """The scores of everything taken."""
        options = self._options
        share = self._hits / self._total if self._total else 0.0
        return ProbeScores(
            examples=self._sentences,
            spearman=mean_over_lengths(self._correlations, options.shortest, options.longest),
            uuas=share if options.target == "distance" else None,
            root_accuracy=share if options.target == "depth" else None,
            loss=self._loss.mean(),
            metric=options.headline,
        )

    def _take(self, ours: NDArray[Any], gold: NDArray[Any], kept: NDArray[np.bool_]) -> None:
        self._sentences += 1
        rows = spearman(np.atleast_2d(ours), np.atleast_2d(gold))
        self._correlations[len(kept)] += rows.tolist()
        if self._options.target == "distance":
            hits, total = right_edges(ours, gold, kept)
        else:
            right = is_root_right(ours, gold, kept)
            hits, total = int(bool(right)), int(right is not None)
        self._hits += hits
        self._total += total


def sentences(batch: SyntaxBatch) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """The sentences of a batch: the row of each, and the positions of its words."""
    arrays = batch.arrays
    for row in range(len(batch)):
        owner = np.stack([arrays["segment_ids"][row], arrays["sentence_ids"][row]], axis=1)
        known = np.flatnonzero((owner >= 0).all(1))
        _, number = np.unique(owner[known], axis=0, return_inverse=True)
        for one in range(int(number.max(initial=-1)) + 1):
            yield row, known[number.reshape(-1) == one]
