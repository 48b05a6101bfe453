"""Probes of words: questions to a classifier about a word's state (Tenney et al. 2019).

Nothing here imports torch. One more probe is a `WordProbe` under a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.registry import Registry
from syntax.trees.ud import DEPREL, UPOS
from trainer.probing.encoded import Encoded


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
