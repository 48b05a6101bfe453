"""Options of parent-scaled self-attention (Bugliarello and Okazaki 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.batches.shown import shown_words
from syntax.errors import SpecError
from syntax.options import Count, Probability
from syntax.variant import Variant
from trainer.options.model import ModelOptions

PARENT_POSITIONS: Final = "parent_positions"


@dataclass(frozen=True, slots=True)
class PascalOptions(ModelOptions):
    """Some heads attend around the parent of each word.

    Attributes:
        scaled: A switch (`trainer.systems.pascal.SWITCHES`).
        syntax_heads: Heads of a layer that are scaled, the first ones.
        syntax_layers: Layers with such heads, 0-based; all when left out.
        variance: Of the normal distribution around the parent.
        parent_ignoring: Probability that a row of a head is not scaled; in training only.
    """

    name: str = "pascal.v1"
    scaled: Variant = "as_published"
    syntax_heads: Count = 2
    syntax_layers: tuple[int, ...] | None = (0,)
    variance: float = 1.0
    parent_ignoring: Probability = 0.4

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        if not 0 < self.variance < np.inf:
            raise SpecError(f"model.variance is {self.variance}; it must be above 0 and finite")

    def extras(self) -> tuple[str, ...]:
        return (PARENT_POSITIONS,) if self.use_syntax else ()

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self.use_syntax:
            return arrays
        return {**arrays, PARENT_POSITIONS: parent_positions(arrays)}


def parent_positions(arrays: Mapping[str, Any]) -> NDArray[np.float32]:
    """The middle of the pieces of the parent of each piece's word, from 0. (B, L), float32.

    It is -1 at special tokens and padding. A root is its own parent, as in the release, and so is a
    word of which truncation removed all that is above it.
    """
    shown = shown_words(arrays)
    row, column = np.nonzero(shown.numbers >= 0)
    word = shown.numbers[row, column]
    head = shown.heads[row, word]
    head = np.where(head >= 0, head, word)
    found = np.full(shown.numbers.shape, -1, np.float32)
    middle = (shown.first + shown.last) / 2
    found[row, column] = middle[row, head]
    return found
