"""A tree and batches without special tokens, to draw samples from."""

from __future__ import annotations

from typing import Any

import numpy as np

from syntax.batches import SpecialTokens

BERT = SpecialTokens(prefix=(101,), separator=(102,), suffix=(102,), pad_id=0, vocab_size=200)
# Three phrases in a row hang from the verb at the end, the second with one of its own.
TREE = [2, 2, 11, 5, 5, 8, 7, 8, 11, 10, 11, -1]


def bare(*trees: list[int]) -> dict[str, Any]:
    """A batch with one segment per row and a special token before it; every piece a word."""
    width = max(map(len, trees)) + 1
    batch = {name: np.full((len(trees), width), -1) for name in ("parents", "word_ids")}
    batch["segment_ids"] = batch["word_ids"].copy()
    for row, tree in enumerate(trees):
        inside = slice(1, len(tree) + 1)
        batch["parents"][row, inside] = [parent + 1 if parent >= 0 else 0 for parent in tree]
        batch["word_ids"][row, inside] = np.arange(len(tree))
        batch["segment_ids"][row, inside] = 0
    return batch
