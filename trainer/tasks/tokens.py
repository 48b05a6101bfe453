"""Tags of a dataset's tokens, at pieces and back: what the tasks that tag tokens share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from syntax.batches import label_tokens, labels_of_tokens
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.variant import Variant
from trainer.tasks.base import Arrays

STREAM_OPTIONS: Final[Mapping[str, Any]] = {"offsets": True, "token_ids": True}
"""What streams must give for tokens to be found."""


class TokenTags:
    """One label column of kind ``tags`` over the first segment.

    Args:
        label: The column.
        pieces: Where the model predicts.
        word_labels: What a token's label becomes on its second word.

    Raises:
        SpecError: The column is of another kind, or has fewer than two names.
    """

    def __init__(
        self, label: LabelSpec, pieces: Literal["first", "words"], word_labels: Variant
    ) -> None:
        if label.kind != "tags" or len(label.names) < 2:
            raise SpecError(
                f"the label {label.name!r} is of kind {label.kind!r} with {len(label.names)} "
                "names; tagging needs a label of kind 'tags' with at least two"
            )
        self.label, self._pieces, self._word_labels = label, pieces, word_labels
        self._missing = label.names.index("O") if "O" in label.names else 0

    def targets(self, arrays: Arrays) -> NDArray[np.int64]:
        """The labels of pieces. *Shape:* (B, L), -100 where there is none."""
        return label_tokens(
            arrays,
            arrays[self.label.name],
            pieces=self._pieces,
            names=self.label.names,
            variant=self._word_labels,
        )

    def pairs(
        self, arrays: Arrays, predicted_BL: NDArray[np.int64]
    ) -> list[tuple[list[str], list[str]]]:
        """Gold and predicted tags of each example; no gold ones of an example without tags.

        A token that truncation left without a piece is predicted as ``O``, or as the first name.

        Args:
            arrays: The batch as the stream gave it.
            predicted_BL: Class ids at pieces.
        """
        gold, names = _of_examples(arrays, self.label.name), self.label.names
        counts = arrays["token_counts"][:, 0]
        found = labels_of_tokens(
            arrays, predicted_BL, counts, pieces=self._pieces, missing=self._missing
        )
        return [
            ([names[tag] for tag in ours.tolist()], [names[tag] for tag in theirs.tolist()])
            for ours, theirs in zip(gold, found, strict=True)
        ]


def example_ids(arrays: Arrays) -> list[str]:
    """Name of each example of a batch, however many sequences it became."""
    names: list[str] = _of_examples(arrays, "example_id")
    return names


def _of_examples(arrays: Arrays, name: str) -> list[Any]:
    """The values of a column, one for each example, however many sequences it became."""
    values: list[Any] = arrays[name]
    if "example_index" not in arrays:
        return values
    _, first = np.unique(arrays["example_index"], return_index=True)
    return [values[row] for row in first.tolist()]
