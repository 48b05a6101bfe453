"""Mentions of a text, and the tags of its tokens, as ids of positions.

Letters in shapes: ``B`` sequences, ``L`` positions: pieces, or words
(`trainer.systems.frozen.words`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from trainer.tasks.base import Arrays

MENTION_IDS: Final = 2
"""Ids of a position's mention before the types' own: outside, and inside one without a type."""

TAG_IDS: Final = 1
"""Ids of a position's tag before the tags' own: none."""


def mention_ids(arrays: Arrays, name: str, segment: int = 0) -> NDArray[np.int64]:
    """The mention of each position, from a column of kind ``spans`` and the offsets. (B, L).

    0 outside, 1 in a mention whose type has no name, else the type's id plus `MENTION_IDS`.
    """
    ids = np.zeros(arrays["segment_ids"].shape, np.int64)
    for row, spans in enumerate(arrays[name]):
        here = arrays["segment_ids"][row] == segment
        starts, ends = arrays["offset_mapping"][row].T
        for start, end, kind in spans.tolist():
            ids[row, here & (starts < end) & (ends > start)] = kind + MENTION_IDS
        if not ids[row].any():
            raise _no_mention(arrays["example_id"][row], name, spans)
    return ids


def token_tag_ids(arrays: Arrays, name: str) -> NDArray[np.int64]:
    """The tag of each position's token in the first segment, plus `TAG_IDS`; 0 for none. (B, L)."""
    tokens = np.where(arrays["segment_ids"] == 0, arrays["token_ids"], -1)
    ids = np.zeros(tokens.shape, np.int64)
    for row, tags in enumerate(arrays[name]):
        known = (tokens[row] >= 0) & (tokens[row] < len(tags))
        ids[row, known] = tags[tokens[row, known]] + TAG_IDS
    return ids


def _no_mention(example: str, name: str, spans: Sequence[Any]) -> SpecError:
    if not len(spans):
        return SpecError(f"example {example!r} has no {name}; relations are between two mentions")
    return SpecError(
        f"nothing of the {name} of example {example!r} is left; raise data.max_length, so that "
        "truncation cuts no mention"
    )
