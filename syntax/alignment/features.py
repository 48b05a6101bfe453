"""Features that the store keeps of a tokenized segment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.alignment import kernels
from syntax.alignment.align import (
    Int32,
    code_points,
    int32,
    offset_array,
    outside_text,
    reject_trees,
)
from syntax.batches import SegmentFeatures
from syntax.errors import InputError
from syntax.trees.parse import Parse
from syntax.trees.ud import deprel_ids, upos_ids


def segment_features(parse: Parse, input_ids: ArrayLike, offsets: ArrayLike) -> SegmentFeatures:
    """Pieces of a parsed text with their words, tree (`attach_heads`) and tags of owner words.

    ``input_ids`` (L,) have no special tokens; ``offsets`` (L, 2) are characters of ``parse.text``.
    """
    ids = np.array(input_ids, dtype=np.int32)
    spans = offset_array(offsets)
    if len(ids) != len(spans):
        raise InputError(f"there are {len(ids)} input ids and {len(spans)} offsets; give one each")
    status, piece, *columns = kernels.segment_columns(
        code_points(parse.text),
        spans,
        int32(parse.head),
        int32(parse.word_start),
        int32(parse.word_end),
        int32(parse.token_first_word),
        int32(parse.sentence_first_word),
        upos_ids(parse.upos),
        deprel_ids(parse.deprel),
    )
    if status == kernels.BAD_OFFSETS:
        raise outside_text(piece, spans, len(parse.text))
    if status == kernels.BAD_TREE:
        reject_trees(parse)
    head, word_ids, upos, deprel, sentence_ids = columns
    return SegmentFeatures(
        input_ids=ids,
        head=head,
        word_ids=word_ids,
        upos=upos,
        deprel=deprel,
        sentence_ids=sentence_ids,
        offsets=spans,
    )


def batch_features(
    parses: Sequence[Parse], input_ids: Int32, offsets: Int32, lengths: Sequence[int]
) -> list[SegmentFeatures]:
    """`segment_features` of many texts end to end in one compiled call, several times faster."""
    bounds = _bounds(parses, lengths)
    if bounds[1, -1] != len(input_ids) or len(input_ids) != len(offsets):
        raise InputError(
            f"there are {len(input_ids)} input ids and {len(offsets)} offsets for {bounds[1, -1]} "
            "pieces; give one each"
        )
    wrong, *columns = kernels.batch_columns(
        code_points("".join([parse.text for parse in parses])),
        offsets,
        _flat(parse.head for parse in parses),
        _flat(parse.word_start for parse in parses),
        _flat(parse.word_end for parse in parses),
        _flat(parse.token_first_word for parse in parses),
        _flat(parse.sentence_first_word for parse in parses),
        upos_ids([*chain.from_iterable(parse.upos for parse in parses)]),
        deprel_ids([*chain.from_iterable(parse.deprel for parse in parses)]),
        bounds,
    )
    if wrong >= 0:
        start, end = bounds[1, wrong : wrong + 2]
        segment_features(parses[wrong], input_ids[start:end], offsets[start:end])
    return [
        SegmentFeatures(*(column[start:end] for column in (input_ids, *columns, offsets)))
        for start, end in pairwise(bounds[1].tolist())
    ]


def _bounds(parses: Sequence[Parse], lengths: Sequence[int]) -> NDArray[np.int64]:
    """First character, piece, word, token and sentence of each text, and the ends."""
    counts = (
        [len(parse.text) for parse in parses],
        lengths,
        [len(parse.form) for parse in parses],
        [len(parse.token_first_word) for parse in parses],
        [len(parse.sentence_first_word) for parse in parses],
    )
    bounds = np.zeros((len(counts), len(parses) + 1), np.int64)
    np.cumsum(np.array(counts, np.int64), axis=1, out=bounds[:, 1:])
    return bounds


def _flat(columns: Iterable[Sequence[int]]) -> Int32:
    return np.fromiter(chain.from_iterable(columns), np.int32)
