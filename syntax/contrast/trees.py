"""Tree samples: a subtree, and what it becomes when its border is moved or its parts exchanged.

Source: Zhang et al. 2022 (Findings of ACL, "Syntax-guided contrastive learning"). Their release
and their answer to the authors of `lr-sib` say that negatives are the subtree's span, shifted;
`lr-sib` exchanges parts of the subtree for neighbouring subtrees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.contrast import exchanges, windows
from syntax.contrast.base import (
    NOTHING,
    Samples,
    Way,
    check_at_least,
    check_way,
    draw_samples,
    example_seeds,
)
from syntax.contrast.draws import IntArray, State
from syntax.contrast.rows import TreeRows
from syntax.contrast.texts import texts_of
from syntax.errors import SpecError


@dataclass(frozen=True, slots=True)
class TreeSampler:
    """Draws tree samples; pieces and positions are those that belong to words.

    ``synclm``: of each piece that has dependents and hangs from another, and whose span has at
    most ``max_size`` pieces, the positive is the span, the negatives are random windows that
    contain the piece and are as long as the span, one longer, or one shorter (if the span has
    more than three), other than the span itself.

    ``lr_sib``: of each subtree of ``min_size`` to ``max_size`` pieces, the positive is the
    subtree. For a negative, one to three of its parts (subtrees without its root) make room for as
    many neighbours: subtrees of pieces next to one of its own, outside and not above it. It may
    have one piece more or less than the subtree. Exchanges are drawn at random, where `lr-sib`
    enumerates all of them; a sample needs two different negatives.

    Of an example, subtrees are taken in random order. Segments are sampled one after the other,
    until there are ``max_samples``; truncated ones as they are in the batch.

    Attributes:
        way: Whose way.
        negatives: Negatives of a sample, at most (K).
        max_samples: Samples of an example, at most.
        min_size: Fewest pieces of a subtree.
        max_size: Most pieces of a subtree.

    Raises:
        SpecError: An unknown way, or numbers out of range.
    """

    way: Way = "synclm"
    negatives: int = 10
    max_samples: int = 32
    min_size: int = 2
    max_size: int = 10

    def __post_init__(self) -> None:
        check_way(self.way)
        check_at_least(1, negatives=self.negatives, max_samples=self.max_samples)
        check_at_least(2, min_size=self.min_size)
        check_at_least(self.min_size, max_size=self.max_size)
        if self.way == "lr_sib" and self.negatives < exchanges.FEWEST:
            raise SpecError(f"negatives is {self.negatives}; lr_sib needs {exchanges.FEWEST}")

    def sample(
        self, batch: Mapping[str, NDArray[Any]], keys: Sequence[str], seed: int, epoch: int
    ) -> Samples:
        """Samples of a batch; see `syntax.contrast.Sampler`.

        Returns:
            S samples, of each example one after the other; columns of the batch, int32. Trees are
            columns in ascending order, the root's among them, with -1 after the last one; the
            width W is ``max_size + 1``.

            * ``tree_offsets``: int64 (B + 1,), first sample of each example, and the end
            * ``tree_root``: (S,)
            * ``tree_positive``: (S, W)
            * ``tree_negatives``: (S, K, W), all -1 after the last one

        Raises:
            InputError: The batch lacks an array, or there are more or fewer keys than examples.
        """
        count, width = len(keys) * self.max_samples, self.max_size + 1
        rows = TreeRows(
            np.empty(count, np.int32),
            np.full((count, width), NOTHING, np.int32),
            np.full((count, self.negatives, width), NOTHING, np.int32),
        )
        seeds = example_seeds(keys, seed, epoch, f"trees of {self.way}")
        offsets = draw_samples(texts_of(batch), seeds, self.max_samples, rows, self._draw)
        filled = {f"tree_{name}": array[: offsets[-1]] for name, array in rows._asdict().items()}
        return {"tree_offsets": offsets, **filled}

    def _draw(
        self, state: State, column: IntArray, parent: IntArray, row: int, end: int, rows: TreeRows
    ) -> int:
        draw = windows.draw if self.way == "synclm" else exchanges.draw
        return int(draw(state, column, parent, row, end, rows, self.min_size, self.max_size))
