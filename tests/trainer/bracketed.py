"""Batches of sentences with projective trees and words of several pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from tests.trainer.conftest import as_stream_batch
from trainer.batch import SyntaxBatch
from trainer.objectives.shown_options import TreePlantingOptions, TreeRegOptions
from trainer.options import ObjectiveOptions

OBJECTIVES = (TreeRegOptions(), TreePlantingOptions())


def projective_tree(rng: np.random.Generator, size: int) -> list[int]:
    """Heads of a random projective tree; -1 at its root."""
    heads = [-1] * size

    def grow(low: int, high: int, above: int) -> None:
        head = int(rng.integers(low, high))
        heads[head] = above
        for start, stop in ((low, head), (head + 1, high)):
            while start < stop:
                end = int(rng.integers(start, stop)) + 1
                grow(start, end, head)
                start = end

    grow(0, size, -1)
    return heads


def sentence_arrays(
    examples: Sequence[Sequence[Sequence[int]]], rng: np.random.Generator, pad: int = 0
) -> dict[str, object]:
    """What a stream gives for some examples, each some trees of words, without a common root."""
    forests, columns = [], []
    for sentences in examples:
        parents, words, numbers = [-1], [-1], [-1]
        for number, heads in enumerate(sentences):
            counts = rng.integers(1, 3, len(heads))
            first = len(parents) + np.cumsum(counts) - counts
            for word, head in enumerate(heads):
                above = int(first[head]) if head >= 0 else -1
                parents += [above, *[int(first[word])] * (counts[word] - 1)]
                words += [max(words) + 1] * counts[word]
                numbers += [number] * counts[word]
        forests.append([*parents, -1])
        columns.append(([*words, -1], [*numbers, -1]))
    arrays = as_stream_batch(forests, rng, pad)
    for row, values in enumerate(columns):
        for name, own in zip(("word_ids", "sentence_ids"), values, strict=True):
            arrays[name][row] = -1
            arrays[name][row, : len(own)] = own
    return arrays


def with_targets(
    arrays: dict[str, object], objectives: Sequence[ObjectiveOptions] = OBJECTIVES
) -> SyntaxBatch:
    """The batch with what the objectives read."""
    found = dict(arrays)
    for one in objectives:
        found |= one.targets(arrays)
    return SyntaxBatch.from_numpy(found, {}, [name for one in objectives for name in one.arrays()])


def bracketed_batch(sizes: Sequence[Sequence[int]], pad: int = 0, seed: int = 0) -> SyntaxBatch:
    """A batch of random trees: words of each sentence of each example."""
    rng = np.random.default_rng(seed)
    trees = [[projective_tree(rng, size) for size in own] for own in sizes]
    return with_targets(sentence_arrays(trees, rng, pad))


def random_states(batch: SyntaxBatch, width: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*batch.input_ids_BL.shape, width, generator=generator)
