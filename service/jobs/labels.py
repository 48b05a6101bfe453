"""The tokens that a dataset brings, and whether its labels fit them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from syntax.errors import LabelError
from syntax.examples import DatasetSpec, Example, Segment
from syntax.labels import Offsets, check_labels, is_local, token_offsets
from syntax.trees.parse import Parse

_NONE: Final = np.empty((0, 2), np.int32)


def given_tokens(segment: Segment, parse: Parse) -> Offsets:
    """Start and end of a segment's tokens in its text, as the dataset has them.

    *Shape:* (T, 2); none for running text. A parser may have cut the text otherwise.
    """
    if segment.tokens is not None:
        return token_offsets(segment.tokens)
    if segment.conllu is not None:
        return np.array([parse.token_start, parse.token_end], np.int32).T
    return _NONE


def label_error(spec: DatasetSpec, example: Example, parses: Sequence[Parse]) -> LabelError | None:
    """What is wrong with the tags and spans of an example whose segments could be analysed."""
    if not any(map(is_local, spec.labels)):
        return None
    tokens = list(map(given_tokens, example.segments, parses))
    texts = [parse.text for parse in parses]
    try:
        check_labels(spec.labels, spec.fields, example.labels, texts, tokens)
    except LabelError as error:
        return error
    return None
