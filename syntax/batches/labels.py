"""Labels of words and tokens laid onto the pieces of a batch, and back to tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.batches.answers import example_rows, locate
from syntax.batches.naming import of_batch
from syntax.errors import InputError, SpecError
from syntax.labels import are_span_labels
from syntax.matrices.offsets import offsets_of
from syntax.variant import Variant, is_released

IGNORE: Final = -100
"""The label that cross-entropy leaves out, in PyTorch and so in Hugging Face's models."""

_NONE: Final = -1

Labelled = Literal["first", "all"]
TokenLabelled = Literal["first", "all", "words"]

_PLACES: Final[Mapping[str, str]] = {
    "B": "BII",
    "I": "III",
    "E": "IIE",
    "L": "IIL",
    "S": "BIE",
    "U": "BIL",
}


def label_pieces(
    batch: Mapping[str, Any],
    labels: Sequence[ArrayLike],
    segment: int = 0,
    pieces: Labelled = "first",
    ignore: int = IGNORE,
) -> NDArray[np.int64]:
    """The labels of words, at their pieces. *Shape:* (B, L), int64.

    ``labels`` are class ids (words,) of the parsed words of that segment, for each example or each
    sequence. With ``pieces="first"``, which needs ``first_pieces=True`` in the stream, a word is
    labelled only where its first piece is, also after truncation.

    >>> batch = {"word_ids": np.array([[-1, 0, 0, 1, -1]]), "segment_ids":
    ...     np.array([[-1, 0, 0, 0, -1]]), "first_pieces": np.array([[0, 1, 0, 1, 0]], bool)}
    >>> label_pieces(batch, [[7, 8]]).tolist()
    [[-100, 7, -100, 8, -100]]
    >>> label_pieces(batch, [[7, 8]], pieces="all").tolist()
    [[-100, 7, 7, 8, -100]]
    """
    if pieces not in ("first", "all"):
        raise SpecError(f"pieces is {pieces!r}; it must be one of first, all")
    ids = batch["word_ids"]
    wanted = (batch["segment_ids"] == segment) & (ids >= 0)
    rows = label_rows(batch, len(labels))
    _check_counts(batch, "word", ids, wanted, rows, sizes_of(labels))
    if pieces == "first":
        wanted &= _column(batch, "first_pieces", "first_pieces")
    return _laid(ids, wanted, rows, labels, ignore)


def label_tokens(
    batch: Mapping[str, Any],
    labels: Sequence[ArrayLike],
    segment: int = 0,
    pieces: TokenLabelled = "first",
    names: Sequence[str] = (),
    variant: Variant = "as_published",
    ignore: int = IGNORE,
) -> NDArray[np.int64]:
    """The labels of a dataset's own tokens, at pieces. *Shape:* (B, L), int64.

    The stream has ``token_ids=True``. ``labels`` are class ids (tokens,) of each example or each
    sequence; those below 0 are ignored, and an example without labels has none.

    With ``words`` the first piece of each syntactic word is labelled, as Syntax-MBERT does. A
    token that the parser cut into several words is one mention still: ``B-`` goes on as ``I-``,
    ``S-`` becomes ``B-`` to ``E-``, as in `syntax.alignment.project_labels`; where ``names``, in
    id order, lack the name that a later word needs, that word is ignored. The released code
    repeats the token's label, so that each word begins a mention. A word over several tokens has
    the label of the first. With ``first`` and ``words``, a removed first piece leaves no label.

    >>> batch = {"token_ids": np.array([[-1, 0, 0, 1, -1]]), "segment_ids":
    ...     np.array([[-1, 0, 0, 0, -1]]), "token_starts": np.array([[0, 1, 0, 1, 0]], bool),
    ...     "token_words": np.array([[[0, 0], [0, 2], [1, 2], [0, 1], [0, 0]]])}
    >>> label_tokens(batch, [[1, 0]]).tolist()
    [[-100, 1, -100, 0, -100]]
    >>> label_tokens(batch, [[1, 0]], pieces="words", names=["O", "B-LOC", "I-LOC"]).tolist()
    [[-100, 1, 2, 0, -100]]
    """
    ids = _column(batch, "token_ids", "token_ids")
    wanted = (batch["segment_ids"] == segment) & (ids >= 0)
    rows = label_rows(batch, len(labels))
    counts = sizes_of(labels)
    wanted &= (counts > 0)[rows][:, None]
    _check_counts(batch, "token", ids, wanted, rows, counts)
    wanted &= _labelled(batch, pieces)
    laid = _laid(ids, wanted, rows, labels, _NONE)
    if pieces == "words" and not is_released(variant):
        laid = _gone_on(laid, batch["token_words"], names)
    return np.where(laid < 0, ignore, laid)


def labels_of_tokens(
    batch: Mapping[str, Any],
    predicted: ArrayLike,
    counts: ArrayLike,
    segment: int = 0,
    pieces: Literal["first", "words"] = "first",
    missing: int = -1,
) -> list[NDArray[np.int64]]:
    """Predictions (B, L) at pieces, back at the dataset's own tokens: inverse of `label_tokens`.

    Each token, of which an example or sequence has ``counts``, is read where its piece has most
    context. ``words`` reads the first word that begins in a token, which has the token's label in
    BIO and in schemes without mentions. A token is ``missing`` if no sequence shows it, or, with
    ``words``, if no word begins in it, since the parser joined it to the one before.
    """
    ids = _column(batch, "token_ids", "token_ids")
    own, given = example_rows(batch), np.asarray(counts, np.int64)
    of_sequence = given[label_rows(batch, len(given))]
    of_example = np.zeros(int(own.max(initial=-1)) + 1, np.int64)
    of_example[own] = of_sequence
    wanted = (batch["segment_ids"] == segment) & (ids >= 0) & _labelled(batch, pieces)
    if pieces == "words":
        wanted &= batch["token_words"][..., 0] == 0
    _check_counts(batch, "token", ids, wanted, own, of_example)
    wanted &= batch.get("is_max_context", True)
    bounds = offsets_of(of_example)
    flat = np.full(bounds[-1], missing, np.int64)
    flat[(bounds[own][:, None] + ids)[wanted]] = np.asarray(predicted)[wanted]
    return np.split(flat, bounds[1:-1]) if len(of_example) else []


def label_rows(batch: Mapping[str, Any], count: int) -> NDArray[np.int64]:
    """Index of each sequence's labels among ``count``: those of its example, or its own."""
    rows = example_rows(batch)
    examples = int(rows.max(initial=-1)) + 1
    if count == examples:
        return rows
    if count != len(rows):
        raise InputError(f"labels of {count} examples came for a batch of {examples}")
    return np.arange(len(rows))


def sizes_of(labels: Sequence[ArrayLike]) -> NDArray[np.int64]:
    return np.fromiter((len(np.asarray(one)) for one in labels), np.int64, len(labels))


class LocatedSpans(NamedTuple):
    """Every span in every sequence of its example, by sequence and then by number. (K,) each."""

    row: NDArray[np.int64]
    number: NDArray[np.int64]
    label: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    state: NDArray[np.int8]


def locate_spans(
    batch: Mapping[str, Any], spans: Sequence[ArrayLike], segment: int = 0
) -> LocatedSpans:
    """Find several spans of each example: `locate` for a label column of kind ``spans``.

    ``spans`` are arrays (N, 2), or (N, 3) with class ids, for each example or each sequence.

    >>> batch = {"segment_ids": np.array([[-1, 0, 0, 0, -1]]), "offset_mapping":
    ...     np.array([[[0, 0], [0, 4], [5, 7], [7, 9], [0, 0]]]),
    ...     "shown_characters": np.array([[[0, 10]]])}
    >>> found = locate_spans(batch, [[(5, 9, 2), (0, 4, 0)]])
    >>> found.label.tolist(), found.start.tolist(), found.end.tolist()
    ([2, 0], [2, 1], [4, 2])
    """
    if "offset_mapping" not in batch:
        raise SpecError("the batch has no offset_mapping; ask for it with `offsets=True`")
    each = [_three_columns(np.asarray(one, np.int64)) for one in spans]
    chosen = [each[row] for row in label_rows(batch, len(spans))]
    counts = np.fromiter(map(len, chosen), np.int64, len(chosen))
    flat = np.concatenate([np.empty((0, 3), np.int64), *chosen])
    row = np.repeat(np.arange(len(chosen)), counts)
    names = ("segment_ids", "offset_mapping", "shown_characters")
    found = locate({name: batch[name][row] for name in names}, flat[:, :2], segment)
    number = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return LocatedSpans(row, number, flat[:, 2], *found)


def _laid(
    ids: NDArray[np.int32],
    wanted: NDArray[np.bool_],
    rows: NDArray[np.int64],
    labels: Sequence[ArrayLike],
    ignore: int,
) -> NDArray[np.int64]:
    bounds = offsets_of(sizes_of(labels))
    values = np.concatenate([np.empty(0, np.int64), *map(np.asarray, labels)]).astype(np.int64)
    laid = np.full(wanted.shape, ignore, np.int64)
    laid[wanted] = values[(bounds[rows][:, None] + ids)[wanted]]
    return laid


def _labelled(batch: Mapping[str, Any], pieces: str) -> NDArray[np.bool_] | np.bool_:
    if pieces == "all":
        return np.True_
    if pieces == "first":
        return _column(batch, "token_starts", "token_ids")
    if pieces == "words":
        words: NDArray[np.bool_] = _column(batch, "token_words", "token_ids")[..., 1] > 0
        return words
    raise SpecError(f"pieces is {pieces!r}; it must be one of first, all, words")


def _gone_on(
    laid: NDArray[np.int64], words: NDArray[np.int32], names: Sequence[str]
) -> NDArray[np.int64]:
    if not names:
        raise SpecError("a token of several words goes on by its label's name; give the names")
    several = (words[..., 1] > 1) & (laid >= 0)
    place = np.where(words[..., 0] == 0, 0, np.where(words[..., 0] + 1 < words[..., 1], 1, 2))
    table = _places(names)
    gone_on = laid.copy()
    gone_on[several] = table[laid[several], place[several]]
    return gone_on


def _places(names: Sequence[str]) -> NDArray[np.int64]:
    """Id of each name at the first, a middle and the last of several words. *Shape:* (names, 3)."""
    ids = {name: number for number, name in enumerate(names)}
    if not are_span_labels(names):
        return np.repeat(np.arange(len(names))[:, None], 3, axis=1)
    rows = [
        [ids.get(letter + name[1:], _NONE) for letter in _PLACES.get(name[0], "OOO")]
        for name in names
    ]
    return np.array(rows, np.int64)


def _column(batch: Mapping[str, Any], name: str, option: str) -> NDArray[Any]:
    if name not in batch:
        raise SpecError(f"the batch has no {name}; ask for it with `{option}=True`")
    column: NDArray[Any] = batch[name]
    return column


def _check_counts(
    batch: Mapping[str, Any],
    kind: str,
    ids: NDArray[np.int32],
    wanted: NDArray[np.bool_],
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    most = np.where(wanted, ids, -1).max(axis=1, initial=-1)
    short = np.flatnonzero(most >= counts[rows])
    if len(short):
        row = int(short[0])
        example = int(rows[row])
        ids_of_batch = batch.get("example_id")
        name = of_batch(example) if ids_of_batch is None else f"example {ids_of_batch[row]!r}"
        raise InputError(
            f"{name} has the {kind} {int(most[row])}, and labels for "
            f"{int(counts[example])} {kind}s; give one for each {kind} of the text",
            example=example,
        )


def _three_columns(spans: NDArray[np.int64]) -> NDArray[np.int64]:
    if spans.ndim == 2 and spans.shape[1] == 2:
        return np.pad(spans, ((0, 0), (0, 1)), constant_values=-1)
    return spans.reshape(-1, 3)
