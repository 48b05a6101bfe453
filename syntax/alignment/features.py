"""Everything the store keeps about one tokenized segment, in one compiled call."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from syntax.alignment import kernels
from syntax.alignment.align import (
    code_points,
    int32,
    offset_array,
    outside_text,
    reject_trees,
)
from syntax.assembly import SegmentFeatures
from syntax.errors import InputError
from syntax.parse import Parse
from syntax.ud import deprel_ids, upos_ids


def segment_features(parse: Parse, input_ids: ArrayLike, offsets: ArrayLike) -> SegmentFeatures:
    """Pieces of a parsed text with their words, tree and tags.

    Args:
        parse: The parsed text.
        input_ids: Ids of its pieces, without special tokens. *Shape:* (L,).
        offsets: Start and end character of each piece in ``parse.text``. *Shape:* (L, 2).

    Returns:
        The features; tags of pieces are those of their owner word (`align_pieces`), the tree is
        that of `attach_heads`.

    Raises:
        InputError: Ids and offsets differ in number, or a piece lies outside the text.
        TreeError: The heads of a sentence do not form one tree.
    """
    ids = np.array(input_ids, dtype=np.int32)
    spans = offset_array(offsets)
    if len(ids) != len(spans):
        raise InputError(f"{len(ids)} input ids came with {len(spans)} offsets; give one per piece")
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
