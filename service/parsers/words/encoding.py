"""Sentences as the arrays that an exported parser reads, aligned with words as in training.

Letters in shapes: ``B`` sentences, ``L`` pieces, ``W`` words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.parsers.columns import Annotation, Columns
from service.parsers.surface import Surface
from service.parsers.words.folder import ParserCard
from syntax.alignment import segment_features

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with words, but without a tree.

    Attributes:
        ids: Ids of its pieces, special tokens included. *Shape:* (L,).
        words: The word of each piece, -1 for none. *Shape:* (L,).
        sources: The word whose pieces give the state of each word. *Shape:* (W,).
    """

    surface: Surface
    form: list[str]
    ids: Int64
    words: Int64
    sources: Int64


class Arrays(NamedTuple):
    """A padded batch: the inputs of ``words.onnx`` (`service.parsers.words.folder`), by name."""

    ids: Int64
    mask: NDArray[np.bool_]
    words: Int64
    sources: Int64
    real: NDArray[np.bool_]


def encode_sentence(
    text: str, surface: Surface, form: list[str], backend: Any, card: ParserCard
) -> Sentence:
    """Find the pieces of a sentence's words, of which there are at most ``card.max_words``.

    Where the encoder cannot read so many pieces, each word keeps its first ones, as many for every
    word as fit. A word without a piece takes the state of the nearest word before it that has some,
    else of the next one.
    """
    start, end = surface.start[0], surface.end[-1]
    encoding = backend.encode(text[start:end], add_special_tokens=False)
    ids = np.array(encoding.ids, np.int64)
    words = _words_of(text[start:end], surface, form, ids, encoding.offsets)
    kept = _kept(words, card.max_words)
    ids, words = ids[kept], words[kept]
    sources = _sources(np.isin(np.arange(len(form)), words))
    special = card.special_tokens
    outside = (len(special.prefix), len(special.suffix))
    framed = np.concatenate([special.prefix, ids, special.suffix]).astype(np.int64)
    return Sentence(surface, form, framed, np.pad(words, outside, constant_values=-1), sources)


def padded(sentences: Sequence[Sentence], pad_id: int) -> Arrays:
    shape_BL = (len(sentences), max(len(one.ids) for one in sentences))
    shape_BW = (len(sentences), max(len(one.sources) for one in sentences))
    ids_BL, words_BL = np.full(shape_BL, pad_id, np.int64), np.full(shape_BL, -1, np.int64)
    mask_BL, real_BW = np.zeros(shape_BL, bool), np.zeros(shape_BW, bool)
    sources_BW = np.zeros(shape_BW, np.int64)
    for row, one in enumerate(sentences):
        ids_BL[row, : len(one.ids)], words_BL[row, : len(one.ids)] = one.ids, one.words
        mask_BL[row, : len(one.ids)], real_BW[row, : len(one.sources)] = True, True
        sources_BW[row, : len(one.sources)] = one.sources
    return Arrays(ids_BL, mask_BL, words_BL, sources_BW, real_BW)


def _words_of(text: str, surface: Surface, form: list[str], ids: Int64, offsets: Any) -> Int64:
    """Word of each piece, aligned as for features. *Shape:* (L,)."""
    start, none = surface.start[0], [None] * len(form)
    starts, ends = [at - start for at in surface.start], [at - start for at in surface.end]
    columns = Columns(text)
    # Of words that share their characters (du = de + le), the alignment gives the pieces to the
    # first whose head is outside; no tree is known yet, so here that is the first word.
    chain = Annotation(form, none, none, none, none, range(len(form)), ["dep"] * len(form))
    columns.add(Surface(starts, ends, surface.words), chain)
    return segment_features(columns.parse(), ids, offsets).word_ids.astype(np.int64)


def _kept(words: Int64, limit: int) -> NDArray[np.bool_]:
    """True for the at most ``limit`` pieces that stay. *Shape:* (L,), bool."""
    if len(words) <= limit:
        return np.ones(len(words), bool)
    owned = words >= 0
    order = np.argsort(words, kind="stable")
    ranks = np.empty(len(words), np.int64)
    counts = np.bincount(words + 1)
    ranks[order] = np.concatenate([np.arange(count) for count in counts])
    most = limit
    while (owned & (ranks < most)).sum() > limit:
        most -= 1
    return owned & (ranks < most)


def _sources(has_piece: NDArray[np.bool_]) -> Int64:
    at = np.arange(len(has_piece))
    before = np.maximum.accumulate(np.where(has_piece, at, -1))
    return np.where(before >= 0, before, int(np.argmax(has_piece)))
