"""Options of the objectives over the words that sequences show: TreeReg, tree-planting, LISA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from syntax.batches import locate_spans
from syntax.batches.shown import batch_brackets, shown_words, span_brackets
from syntax.errors import SpecError
from syntax.options import Count, NonNegative, NonNegativeInt
from syntax.variant import Variant
from trainer.options.objective import ObjectiveOptions
from trainer.outcomes import outcome_arrays

TREE_REG_ARRAYS: Final = ("tree_reg_words", "tree_reg_brackets")
"""First and last position of each word, (B, W, 2), and `BatchBrackets.rows`, (S, 6)."""

PLANTING_ARRAYS: Final = ("planting_words", "planting_first")
"""Word of each position, (B, L), and first position of each word, (B, W); -1 for none."""

HEADS: Final = "head_positions"


@dataclass(frozen=True, slots=True)
class TreeRegOptions(ObjectiveOptions):
    """States must tell where a constituent divides (Nandi et al. 2025).

    Attributes:
        states: ``last``; ``syntax``, those of a graph encoder; or the number of a layer, 0 for the
            embeddings.
        heads: Read only the part of the states at the place of the first heads, so many; all
            when left out.
        average: A switch: how the losses of a sentence's brackets become one.
        constituents: Label column of kind ``spans`` that has the constituents, as the reader
            ``brackets`` gives them; left out, they are made of dependency trees.
    """

    name: str = "tree_reg.v1"
    states: Literal["last", "syntax"] | int = "last"
    heads: Count | None = None
    average: Variant = "as_published"
    constituents: str | None = None

    def is_active(self, use_syntax: bool) -> bool:
        return self.weight > 0 and use_syntax

    def reads_syntax_states(self) -> bool:
        return self.states == "syntax"

    def arrays(self) -> tuple[str, ...]:
        return TREE_REG_ARRAYS

    def targets(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        shown = shown_words(arrays)
        if self.constituents is None:
            found = batch_brackets(shown)
        else:
            found = span_brackets(shown, locate_spans(arrays, _spans(arrays, self.constituents)))
        words = np.stack([shown.first, shown.last], axis=-1)
        values = dict(zip(TREE_REG_ARRAYS, (words, found.rows), strict=True))
        return {**values, **outcome_arrays(found.outcomes)}

    def stream_options(self) -> Mapping[str, Any]:
        return {} if self.constituents is None else {"offsets": True}


def _spans(arrays: Mapping[str, Any], name: str) -> Any:
    if name not in arrays:
        raise SpecError(
            f"objectives.tree_reg.constituents is {name!r}, and the examples have no such label; "
            "name the label column of the dataset that has constituents (`parsebank backfill "
            "brackets` makes `constituents`)"
        )
    return arrays[name]


@dataclass(frozen=True, slots=True)
class TreePlantingOptions(ObjectiveOptions):
    """Heads of the last layer must attend to what is near in the tree (Yoshida et al. 2024).

    Attributes:
        heads: Which heads of the last layer, 0-based.
    """

    name: str = "tree_planting.v1"
    heads: tuple[NonNegativeInt, ...] = (0,)

    def __post_init__(self) -> None:
        ObjectiveOptions.__post_init__(self)
        if not self.heads:
            raise SpecError(f"objectives.{self.name}.heads is empty; name at least one head")

    def matrices(self) -> tuple[str, ...]:
        return ("distance",)

    def arrays(self) -> tuple[str, ...]:
        return PLANTING_ARRAYS

    def targets(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        shown = shown_words(arrays)
        paired = {row for row, start, end in shown.stretches() if end - start > 1}
        count = len(shown.first) - len(paired)
        values = dict(zip(PLANTING_ARRAYS, (shown.numbers, shown.first), strict=True))
        return {**values, **outcome_arrays({"example_without_planted_rows": count})}


@dataclass(frozen=True, slots=True)
class ParseHeadOptions(ObjectiveOptions):
    """A head of attention must attend to heads of words, and tell labels (Strubell et al. 2018).

    Attributes:
        label_weight: Of the loss of labels; that of heads has the weight 1.
    """

    name: str = "parse_head.v1"
    label_weight: NonNegative = 0.1

    def is_active(self, use_syntax: bool) -> bool:
        return self.weight > 0 and use_syntax

    def arrays(self) -> tuple[str, ...]:
        return (HEADS,)

    def targets(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {HEADS: head_positions(arrays)}


def head_positions(arrays: Mapping[str, Any]) -> NDArray[np.int32]:
    """For each piece, the first position of the head of its word. *Shape:* (B, L).

    A root is its own head, and so is a word of which truncation removed all that is above it.
    Special tokens and padding are their own.
    """
    shown = shown_words(arrays)
    row, column = np.nonzero(shown.numbers >= 0)
    word = shown.numbers[row, column]
    head = shown.heads[row, word]
    B, L = shown.numbers.shape
    found = np.tile(np.arange(L, dtype=np.int32), (B, 1))
    found[row, column] = shown.first[row, np.where(head >= 0, head, word)]
    return found
