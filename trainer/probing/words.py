"""Words of a split, as probes read them, and the questions that a classifier is asked about them.

Tenney et al. 2019. Nothing here imports torch. One more probe is a `WordProbe` under a name.

Letters in shapes: ``N`` examples, ``T`` words of all examples, ``D`` width of the states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.registry import Registry
from syntax.trees.ud import DEPREL, UPOS

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


@dataclass(frozen=True, slots=True)
class WordProbe:
    """A question about each word, or about each word and its head (roots are not asked then).

    ``classes`` gives the place of each word's class in ``names``, or -1 where it is not asked.
    """

    names: Sequence[str]
    classes: Callable[[Encoded], NDArray[Any]]
    with_head: bool = False


def _known(ids: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Ids of `syntax.trees.ud`, with -1 for 0, which stands for none."""
    return np.where(ids > 0, ids, -1).astype(np.int64)


WORD_PROBES: Final[Registry[WordProbe]] = Registry("word probe")

WORD_PROBES.add("upos", WordProbe(UPOS, lambda split: _known(split.upos)))
WORD_PROBES.add("deprel", WordProbe(DEPREL, lambda split: _known(split.deprel)))
WORD_PROBES.add("arc", WordProbe(DEPREL, lambda split: _known(split.deprel), with_head=True))
