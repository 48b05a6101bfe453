"""Items of classifier probes: vectors, their classes, and control tasks.

Letters in shapes: ``I`` items, ``T`` words, ``N`` examples, ``D`` width of the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trainer.probing.options import probed_label
from trainer.probing.words import WORD_PROBES, Encoded
from trainer.tasks.classes import class_ids

MASK: Final = "mask"
"""In the place of a layer: no states, but what SG-Net's mask says."""


@dataclass(frozen=True, slots=True)
class Items:
    """Items of a split that are classified; those of examples without a label are not asked.

    ``rows`` are words, or else examples, whose states are joined. *Shape:* (I, 1) or (I, 2).
    """

    rows: NDArray[np.int64]
    gold: NDArray[np.int64]
    example: NDArray[np.int64]
    of_words: bool
    names: tuple[str, ...]
    unlabelled: int = 0

    def __len__(self) -> int:
        return len(self.gold)

    def drawn(self, most: int) -> Items:
        """At most so many items, the same ones each time."""
        if len(self) <= most:
            return self
        kept = np.sort(np.random.default_rng(0).permutation(len(self))[:most])
        return replace(self, rows=self.rows[kept], gold=self.gold[kept], example=self.example[kept])


def items_of(task: str, encoded: Encoded) -> Items:
    if task not in WORD_PROBES:
        return _of_examples(task, encoded)
    probe = WORD_PROBES[task]
    gold = probe.classes(encoded).astype(np.int64)
    pairs = np.stack([np.arange(len(gold)), encoded.parents], 1)
    rows = pairs if probe.with_head else pairs[:, :1]
    asked = (gold >= 0) & (rows >= 0).all(1)
    return Items(rows[asked], gold[asked], encoded.examples[asked], True, tuple(probe.names))


def _of_examples(name: str, encoded: Encoded) -> Items:
    label = probed_label(name, encoded.dataset.labels)
    gold = class_ids(encoded.dataset, label)
    asked = np.flatnonzero(gold >= 0)
    unlabelled = len(gold) - len(asked)
    return Items(asked[:, None], gold[asked], asked, False, label.names, unlabelled)


def features(encoded: Encoded, layer: int | str, items: Items) -> NDArray[np.float32]:
    """The vectors of the items: states of a layer, or of `MASK`. *Shape:* (I, D)."""
    if layer == MASK:
        table: NDArray[Any] = mask_features(encoded, items.of_words)
    else:
        table = (encoded.words if items.of_words else encoded.vectors)[int(layer)]
    found: NDArray[np.float32] = table[items.rows].reshape(len(items), -1).astype(np.float32)
    return found


def mask_features(encoded: Encoded, of_words: bool) -> NDArray[np.float32]:
    """Features of each word, (T, 3), or text, (N, 4), by SG-Net's mask alone; scaled to about 1.

    A word attends to itself and its ancestors: its row's sum is its depth and one, and its column's
    the size of its subtree. Of a text: mean, maximum and deviation of the row sums, and its length.
    """
    rows, columns = _sums(encoded.parents)
    lengths = np.diff(encoded.starts)
    if of_words:
        each = np.repeat(lengths, lengths)
        return np.stack([rows / 8, np.log2(columns), each / 32], 1).astype(np.float32)
    found = np.zeros((len(lengths), 4), np.float32)
    for at, (first, end) in enumerate(zip(encoded.starts[:-1], encoded.starts[1:], strict=True)):
        if end > first:
            own = rows[first:end] / 8
            found[at] = own.mean(), own.max(), own.std(), (end - first) / 32
    return found


def _sums(parents: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of the mask's rows and columns. *Shape:* (T,) each."""
    rows, columns = np.zeros(len(parents)), np.zeros(len(parents))
    # Of each word the ancestor so many edges up, -1 beyond the root.
    above = np.arange(len(parents))
    while (known := above >= 0).any():
        rows += known
        np.add.at(columns, above[known], 1.0)
        above = np.where(known, parents[above], -1)
    return rows, columns


def control_gold(
    items: Items, pieces: Sequence[tuple[int, ...]], shares: NDArray[np.float64], seed: int
) -> NDArray[np.int64]:
    """Classes of the control task, one for each type of word, drawn at random. *Shape:* (I,).

    Hewitt and Liang 2019, "Designing and Interpreting Probes with Control Tasks". A probe that does
    as well here learns the words by heart. The type of a pair is that of its first word.

    ``shares`` are the frequencies of classes in the training data; all splits take the same seed.
    """
    classes = range(len(shares))
    drawn: dict[tuple[int, ...], int] = {}
    found = np.zeros(len(items), np.int64)
    for at, word in enumerate(items.rows[:, 0].tolist()):
        kind = pieces[word]
        if kind not in drawn:
            drawn[kind] = Random(f"{seed} {kind}").choices(classes, shares.tolist())[0]
        found[at] = drawn[kind]
    return found


def class_shares(items: Items) -> NDArray[np.float64]:
    counts = np.bincount(items.gold, minlength=len(items.names))
    found: NDArray[np.float64] = counts / max(1, counts.sum())
    return found
