"""Labels of words laid onto the pieces of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.assembly.answers import example_rows
from syntax.errors import InputError, SpecError
from syntax.matrices.offsets import offsets_of, sizes

IGNORE: Final = -100
"""The label that cross-entropy leaves out, in PyTorch and so in Hugging Face's models."""

Labelled = Literal["first", "all"]


def label_pieces(
    batch: Mapping[str, Any],
    labels: Sequence[ArrayLike],
    segment: int = 0,
    pieces: Labelled = "first",
    ignore: int = IGNORE,
) -> NDArray[np.int64]:
    """The labels of words, at their pieces.

    A piece that truncation or a window left without the first piece of its word is none of
    ``first``: the word is labelled where its first piece is, and nowhere else.

    Args:
        batch: What a stream gives; with ``first_pieces=True`` for ``pieces="first"``.
        labels: Class ids of the words of each example's text of that segment, as many as words
            were parsed. Sequences of one example share them. *Shape:* (words,) each.
        segment: Which segment of the sequences; all others are ignored.
        pieces: Label the ``first`` piece of a word only, or ``all`` of them.
        ignore: Label of all other positions.

    Returns:
        *Shape:* (B, L), int64.

    Raises:
        SpecError: The batch does not tell first pieces.
        InputError: The labels are of another number of examples, or a word has none.

    >>> batch = {"word_ids": np.array([[-1, 0, 0, 1, -1]]), "segment_ids":
    ...     np.array([[-1, 0, 0, 0, -1]]), "first_pieces": np.array([[0, 1, 0, 1, 0]], bool)}
    >>> label_pieces(batch, [[7, 8]]).tolist()
    [[-100, 7, -100, 8, -100]]
    >>> label_pieces(batch, [[7, 8]], pieces="all").tolist()
    [[-100, 7, 7, 8, -100]]
    """
    rows = example_rows(batch)
    _check_examples(rows, len(labels))
    wanted = (batch["segment_ids"] == segment) & (batch["word_ids"] >= 0)
    bounds = offsets_of([len(np.asarray(one)) for one in labels])
    _check_words(batch["word_ids"], wanted, rows, bounds)
    if pieces == "first":
        wanted &= _first_pieces(batch)
    elif pieces != "all":
        raise SpecError(f"pieces is {pieces!r}; it must be one of first, all")
    values = np.concatenate([np.empty(0, np.int64), *map(np.asarray, labels)]).astype(np.int64)
    laid = np.full(wanted.shape, ignore, np.int64)
    laid[wanted] = values[(bounds[rows][:, None] + batch["word_ids"])[wanted]]
    return laid


def _first_pieces(batch: Mapping[str, Any]) -> NDArray[np.bool_]:
    if "first_pieces" not in batch:
        raise SpecError("the batch does not tell first pieces; ask for them with first_pieces=True")
    first: NDArray[np.bool_] = batch["first_pieces"]
    return first


def _check_examples(rows: NDArray[np.int64], count: int) -> None:
    examples = int(rows.max(initial=-1)) + 1
    if examples != count:
        raise InputError(f"labels of {count} examples came for a batch of {examples}")


def _check_words(
    word_ids: NDArray[np.int32],
    wanted: NDArray[np.bool_],
    rows: NDArray[np.int64],
    bounds: NDArray[np.int64],
) -> None:
    counts = sizes(bounds)
    most = np.where(wanted, word_ids, -1).max(axis=1, initial=-1)
    short = np.flatnonzero(most >= counts[rows])
    if len(short):
        example = int(rows[short[0]])
        raise InputError(
            f"example {example} of the batch has the word {int(most[short[0]])}, and labels for "
            f"{int(counts[example])} words; give one for each word of the text",
            example=example,
        )
