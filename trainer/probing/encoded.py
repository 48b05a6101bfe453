"""Input of probes from a split: states of an encoder, and the trees behind them.

Letters in shapes: ``N`` examples, ``T`` words of all examples, ``D`` width of the states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from featurestore import FeatureDataset


@dataclass(frozen=True, slots=True)
class Encoded:
    """States of an encoder on the examples of a split, in their order.

    Attributes:
        words: States of words, by layer, float16. *Shape:* (T, D) each.
        vectors: Vectors of texts, by layer, float16. *Shape:* (N, D) each.
        starts: The first word of each example, and behind them T. *Shape:* (N + 1,).
        pieces: The wordpieces of each word, which tell words of one type.
        parents: Each word's head, as a position among all; -1 at roots. *Shape:* (T,).
        sentences: Number of each word's sentence in its example. *Shape:* (T,).
    """

    words: list[NDArray[np.float16]]
    vectors: list[NDArray[np.float16]]
    starts: NDArray[np.int64]
    pieces: list[tuple[int, ...]]
    parents: NDArray[np.int64]
    upos: NDArray[np.uint8]
    deprel: NDArray[np.uint8]
    sentences: NDArray[np.int64]
    dataset: FeatureDataset

    @property
    def examples(self) -> NDArray[np.int64]:
        """The example of each word. *Shape:* (T,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
