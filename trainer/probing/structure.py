"""The structural probe over states that are already computed (Hewitt and Manning 2019).

Probe and scores are those of the task ``structural_probe.v1``. Letters in shapes: ``B`` examples,
``W`` words, ``D`` width of the states.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from syntax.matrices import tree_depth, tree_distance
from syntax.trees.ud import upos_id
from trainer.batch import SyntaxBatch
from trainer.nn.probes import DepthProbe, DistanceProbe
from trainer.probing.options import StructureOptions, Target
from trainer.probing.words import Encoded
from trainer.tasks import StructuralProbeOptions
from trainer.tasks.structural_probe import ProbeScorer

Shares = NDArray[np.float64]
"""Edges or roots found in each example, and how many there are. *Shape:* (N, 2)."""


@dataclass(frozen=True, slots=True)
class Trees:
    """Words and trees of a split, without states; ``chosen`` are examples of two words or more."""

    encoded: Encoded
    target: Target
    chosen: NDArray[np.int64]

    @classmethod
    def of(cls, encoded: Encoded, target: Target) -> Trees:
        return cls(encoded, target, np.flatnonzero(np.diff(encoded.starts) > 1))

    def words(self, example: int) -> slice:
        return slice(int(self.encoded.starts[example]), int(self.encoded.starts[example + 1]))

    def parents(self, example: int) -> NDArray[np.int32]:
        """The head of each word, counted in the example; -1 at roots. *Shape:* (W,)."""
        at = self.words(example)
        own = self.encoded.parents[at]
        return np.where(own < 0, -1, own - at.start).astype(np.int32)

    def batch(self, examples: Sequence[int], layer: int) -> tuple[torch.Tensor, SyntaxBatch]:
        """States of a layer, float32, *shape* (B, W, D), and the trees of the examples."""
        places = [self.words(example) for example in examples]
        lengths = np.array([at.stop - at.start for at in places])
        B, W = len(places), int(lengths.max())
        states = np.zeros((B, W, self.encoded.words[layer].shape[1]), np.float32)
        distance = np.full((B, W, W), np.iinfo(np.uint8).max, np.uint8)
        depth = np.zeros((B, W), np.uint8)
        for row, (example, at) in enumerate(zip(examples, places, strict=True)):
            parents, size = self.parents(example), lengths[row]
            states[row, :size] = self.encoded.words[layer][at]
            distance[row, :size, :size] = tree_distance(parents)
            depth[row, :size] = tree_depth(parents)
        empty = torch.zeros(B, W, dtype=torch.int64)
        batch = SyntaxBatch.from_tensors(
            empty,
            torch.as_tensor(np.arange(W) < lengths[:, None]),
            labels={},
            special_tokens_mask=empty,
            upos=empty,
            deprel=empty,
            distance=torch.as_tensor(distance),
            depth=torch.as_tensor(depth),
            lengths=torch.as_tensor(lengths),
        )
        return torch.as_tensor(states), batch

    def sentences(self, example: int) -> Iterator[NDArray[np.int64]]:
        """The words of each sentence of an example, counted in the example."""
        numbers = self.encoded.sentences[self.words(example)]
        for number in np.unique(numbers):
            yield np.flatnonzero(numbers == number)


def fit(
    train: Trees, dev: Trees, layer: int, options: StructureOptions, seed: int
) -> DistanceProbe | DepthProbe:
    """The probe of the pass whose loss on dev is the lowest, as the authors choose it."""
    width = train.encoded.words[layer].shape[1]
    rank = min(options.rank, width)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        probe: DistanceProbe | DepthProbe
        if train.target == "distance":
            probe = DistanceProbe(width, rank, target="as_released")
        else:
            probe = DepthProbe(width, rank)
        optimizer = torch.optim.Adam(probe.parameters(), options.learning_rate)
        best, kept, without_better = float("inf"), probe, 0
        for _ in range(options.epochs):
            order = train.chosen[torch.randperm(len(train.chosen)).numpy()]
            for states_BWD, batch in _batches(train, layer, order, options.batch_size):
                optimizer.zero_grad(set_to_none=True)
                probe(states_BWD, batch).backward()
                optimizer.step()
            loss = _loss(dev, layer, probe)
            if loss < best:
                best, kept, without_better = loss, copy.deepcopy(probe), 0
                continue
            without_better += 1
            if without_better == options.patience:
                break
            for group in optimizer.param_groups:
                group["lr"] /= 10
    return kept


def _batches(
    trees: Trees, layer: int, order: NDArray[np.int64], size: int
) -> Iterator[tuple[torch.Tensor, SyntaxBatch]]:
    for start in range(0, len(order), size):
        yield trees.batch(order[start : start + size].tolist(), layer)


@torch.no_grad()
def _loss(trees: Trees, layer: int, probe: DistanceProbe | DepthProbe) -> float:
    losses = [
        float(probe(states_BWD, batch)) * len(batch)
        for states_BWD, batch in _batches(trees, layer, trees.chosen, 50)
    ]
    return sum(losses) / max(1, len(trees.chosen))


@torch.no_grad()
def probe_scores(
    trees: Trees, layer: int, probe: DistanceProbe | DepthProbe
) -> tuple[float, Shares]:
    def predicted(example: int) -> NDArray[Any]:
        states = torch.as_tensor(trees.encoded.words[layer][trees.words(example)]).float()
        found: NDArray[Any] = probe.predict(states[None])[0].numpy()
        return found

    return scores(trees, predicted)


def chain_scores(trees: Trees) -> tuple[float, Shares]:
    """Scores of a chain of the words, the first being the root: the authors' baseline LINEAR."""

    def predicted(example: int) -> NDArray[Any]:
        place = np.arange(len(trees.parents(example)), dtype=float)
        return place if trees.target == "depth" else np.abs(place[:, None] - place)

    return scores(trees, predicted)


def scores(trees: Trees, predicted: Callable[[int], NDArray[Any]]) -> tuple[float, Shares]:
    """UUAS or root accuracy of predicted distances or depths, and what each example adds to it."""
    options = StructuralProbeOptions(target=trees.target)
    scorer = ProbeScorer(options)
    for example in trees.chosen.tolist():
        parents, ours = trees.parents(example), predicted(example)
        gold = tree_distance(parents) if trees.target == "distance" else tree_depth(parents)
        spoken = trees.encoded.upos[trees.words(example)] != upos_id("PUNCT")
        for words in trees.sentences(example):
            at = np.ix_(words, words) if trees.target == "distance" else words
            scorer.take(str(example), ours[at], gold[at].astype(float), spoken[words])
    shares = np.zeros((len(trees.encoded.starts) - 1, 2))
    for one in scorer.predictions():
        shares[int(one.example_id)] = one.shares[options.headline]
    return scorer.scores().headline, shares
