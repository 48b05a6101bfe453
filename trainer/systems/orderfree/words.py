"""From pieces to words: the arrays of a stream with a position for ROOT and for each word.

Words and tags are those of parses, so that words without a piece are among them, and nothing is
cut. Of texts in memory, which come without parses, the words that have a piece are known. ``L``
positions are ``W`` words, and ROOT if it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.batches.words import WordLayout, word_layout
from syntax.trees.parse import Parse
from syntax.trees.ud import UPOS

_UPOS = {name: number for number, name in enumerate(UPOS)}


def sentence_arrays(arrays: Mapping[str, Any], root: bool = True) -> dict[str, Any]:
    """The arrays of a batch with a position for ROOT, if it is read, and for each word.

    * ``upos`` of each position, 0 for ROOT, for which ``special_tokens_mask`` is true;
    * ``parents`` -1 and ``deprel`` 0: trees are predicted;
    * ``word_layout``, in which each word has the position of its own;
    * ``word_ids`` and ``segment_ids``, -1 where no word is;
    * ``word_states``, (B, L, D), 0 at ROOT, and ``rare_words``, bool (B, L), where they are given;
    * arrays of whole examples, as they were.
    """
    if "parses" in arrays:
        layout = _layout_of_parses(arrays["parses"], root)
        upos_BW = _upos_of_parses(arrays["parses"], layout.words.shape)
    else:
        layout, upos_BW = _layout_of_pieces(arrays, root)
    real_BL = _shifted(layout.words >= 0, root, True)
    if not real_BL.shape[1]:  # nothing but empty texts
        real_BL = np.zeros((len(real_BL), 1), bool)
    B, L = real_BL.shape
    special_BL = np.zeros((B, L), bool)
    special_BL[:, :1] = root
    found = {
        **{name: arrays[name] for name in _OF_EXAMPLES if name in arrays},
        "input_ids": np.zeros((B, L), np.int64),
        "token_type_ids": np.zeros((B, L), np.int64),
        "attention_mask": real_BL,
        "special_tokens_mask": special_BL,
        "upos": _fitted(_shifted(upos_BW, root, 0), L),
        "deprel": np.zeros((B, L), np.uint8),
        "parents": np.full((B, L), -1, np.int32),
        "lengths": real_BL.sum(1).astype(np.int32),
        "word_layout": layout,
        "word_ids": layout.pieces.astype(np.int32),
        "segment_ids": np.where(layout.pieces >= 0, 0, -1).astype(np.int32),
    }
    if "word_states" in arrays:
        found["word_states"] = _states(arrays["word_states"], layout, L, root)
    if "rare_words" in arrays:
        found["rare_words"] = np.zeros((B, L), bool)
        for row, rare in enumerate(arrays["rare_words"]):
            found["rare_words"][row, root : root + len(rare)] = rare
    return found


_OF_EXAMPLES = ("example_id", "example_index", "choice_index", "parses", "is_gold")


def _layout_of_parses(parses: Sequence[Sequence[Parse]], root: bool) -> WordLayout:
    sentences = [own[0].sentence_ids() for own in parses]
    counts = [len(one) for one in sentences]
    B, W = len(counts), max(counts, default=0)
    shape = (B, W)
    numbers, owners = (np.full(shape, -1, np.int64) for _ in range(2))
    first = np.zeros(shape, np.int64)
    for row, own in enumerate(sentences):
        numbers[row, : counts[row]] = np.arange(counts[row])
        owners[row, : counts[row]] = own
        starts = np.asarray(parses[row][0].sentence_first_word, np.int64)
        first[row, : counts[row]] = starts[own]
    return _one_text(numbers, owners, first, root)


def _one_text(
    words: NDArray[np.int64], sentences: NDArray[np.int64], first: NDArray[np.int64], root: bool
) -> WordLayout:
    W = words.shape[1]
    real = words >= 0
    places = np.where(real, np.arange(W), -1)
    return WordLayout(
        pieces=_fitted(_shifted(places, root, -1), max(W + root, 1), -1),
        sources=np.where(real, np.arange(W), 0),
        sentences=sentences,
        segments=np.where(real, 0, -1),
        words=words,
        first=first,
        whole=real,
    )


def _upos_of_parses(parses: Sequence[Sequence[Parse]], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    found = np.zeros(shape, np.uint8)
    for row, own in enumerate(parses):
        tags = [_UPOS.get(tag or "", 0) for tag in own[0].upos]
        found[row, : len(tags)] = tags
    return found


def _layout_of_pieces(
    arrays: Mapping[str, Any], root: bool
) -> tuple[WordLayout, NDArray[np.uint8]]:
    found = word_layout(arrays)
    upos = np.zeros(found.words.shape, np.uint8)
    row, column = np.nonzero(found.pieces >= 0)
    upos[row, found.pieces[row, column]] = arrays["upos"][row, column]
    return _one_text(found.words, found.sentences, found.first, root), upos


def _states(
    examples: Sequence[Any], layout: WordLayout, length: int, root: bool
) -> NDArray[np.float16]:
    """States of words (B, L, D); a word without a piece takes that of the word before it."""
    width = examples[0].states.shape[1] if examples else 0
    found = np.zeros((len(examples), length, width), np.float16)
    for row, example in enumerate(examples):
        known = example.states
        words = layout.words[row][layout.words[row] >= 0]
        if not len(words) or not len(known):
            continue
        has_state = known.any(1)
        places = np.where(has_state, np.arange(len(known)), 0)
        source = np.maximum.accumulate(places)
        chosen = source[np.minimum(words, len(known) - 1)]
        found[row, root : root + len(words)] = known[chosen]
    return found


def _shifted(values: NDArray[Any], root: bool, at_root: Any) -> NDArray[Any]:
    return np.pad(values, ((0, 0), (1, 0)), constant_values=at_root) if root else values


def _fitted(values: NDArray[Any], length: int, padding: Any = 0) -> NDArray[Any]:
    missing = length - values.shape[1]
    return np.pad(values, ((0, 0), (0, missing)), constant_values=padding) if missing else values
