"""Positions of the words of sequences, as NumPy arrays; nothing here imports torch.

Letters in shapes: ``B`` sequences, ``L`` positions, ``W`` words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

NONE = -1
"""The position of words that a sequence does not have."""


def word_positions(arrays: Mapping[str, Any]) -> NDArray[np.int64]:
    """The position of the first piece of each word, then `NONE`. *Shape:* (B, W), W at least 1.

    >>> words = np.array([[-1, 0, 0, 1, 0, -1], [-1, 0, 1, -1, -1, -1]])
    >>> texts = np.array([[-1, 0, 0, 0, 1, -1], [-1, 0, 0, -1, -1, -1]])
    >>> word_positions({"word_ids": words, "segment_ids": texts}).tolist()
    [[1, 3, 4], [1, 2, -1]]
    """
    owner_BL2 = np.stack([arrays["word_ids"], arrays["segment_ids"]], axis=2)
    first_BL = arrays["word_ids"] >= 0
    first_BL[:, 1:] &= (owner_BL2[:, 1:] != owner_BL2[:, :-1]).any(2)
    counts_B = first_BL.sum(1)
    W = max(1, int(counts_B.max(initial=0)))
    positions_BW = np.argsort(~first_BL, axis=1, kind="stable")[:, :W]
    return np.where(np.arange(W) < counts_B[:, None], positions_BW, NONE)


def every_position(arrays: Mapping[str, Any]) -> NDArray[np.int64]:
    """All positions of a batch, those of special tokens and padding among them. *Shape:* (B, L)."""
    B, L = arrays["word_ids"].shape
    return np.broadcast_to(np.arange(L), (B, L)).copy()
