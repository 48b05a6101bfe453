"""Labels of tokens and spans, and whether they fit the texts that they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import LabelError
from syntax.examples import LabelSpec, LabelValue, SpanLabel

Offsets = NDArray[np.int32]
"""Start and end character of each token of a text. *Shape:* (T, 2)."""

LARGEST_FLOAT: Final = float(np.finfo(np.float32).max)
"""Largest absolute value of a label of kind ``float``, which is stored in 32 bits."""


def token_offsets(tokens: Sequence[str]) -> Offsets:
    """Where tokens are in their text, which is the tokens joined by single spaces.

    *Shape:* (T, 2), int32.

    >>> token_offsets(["New York", "is", "big"]).tolist()
    [[0, 8], [9, 11], [12, 15]]
    """
    lengths = np.fromiter(map(len, tokens), np.int32, len(tokens))
    ends = np.cumsum(lengths + 1, dtype=np.int32) - 1
    return np.stack([ends - lengths, ends], axis=1)


def is_local(label: LabelSpec) -> bool:
    """Whether a label column is about the tokens or characters of one field."""
    return label.kind in ("tags", "spans")


def field_of(label: LabelSpec, fields: Sequence[str]) -> int:
    """Number of the field that tags or spans are about."""
    return 0 if label.field is None else fields.index(label.field)


def check_labels(
    labels: Sequence[LabelSpec],
    fields: Sequence[str],
    values: Mapping[str, LabelValue | None],
    texts: Sequence[str],
    tokens: Sequence[Offsets],
) -> None:
    """Refuse tags and spans that do not fit their text; other kinds are not looked at.

    Args:
        labels: The label columns.
        fields: Name of each segment.
        values: Value of each column; those of `None` fit.
        texts: Text of each segment.
        tokens: Tokens of each segment's text; none where running text was given.

    Raises:
        LabelError: Tags are not one for each token, a span is not in its text or runs backwards,
            or a name is none of a closed list.
    """
    for label in filter(is_local, labels):
        value, at = values.get(label.name), field_of(label, fields)
        if value is None:
            continue
        if not isinstance(value, tuple):
            raise LabelError(f"label {label.name} is {value!r}; expected a tuple, its {label.kind}")
        if label.kind == "tags":
            _check_count(label, fields[at], len(value), len(tokens[at]))
            _check_names(label, value)
        else:
            _check_names(label, [_span(label, fields[at], x, len(texts[at])).label for x in value])


def _check_count(label: LabelSpec, field: str, tags: int, tokens: int) -> None:
    if not tokens:
        raise LabelError(f"label {label.name} has {tags} tags, but {field} came without tokens")
    if tags != tokens:
        raise LabelError(
            f"label {label.name} has {tags} tags for the {tokens} tokens of {field}; give one each"
        )


def _check_names(label: LabelSpec, names: Sequence[object]) -> None:
    unknown = set(names).difference(label.names) if label.names else ()
    if unknown:
        first = next(name for name in names if name in unknown)
        raise LabelError(
            f"label {label.name} has {first!r}; expected one of {', '.join(label.names)}"
        )


def _span(label: LabelSpec, field: str, span: object, length: int) -> SpanLabel:
    if not isinstance(span, SpanLabel):
        raise LabelError(f"label {label.name} has {span!r}; expected a SpanLabel")
    if not 0 <= span.start_char <= span.end_char <= length:
        raise LabelError(
            f"label {label.name} has a span from character {span.start_char} to {span.end_char}; "
            f"the text of {field} has {length} characters, and a span does not end before it starts"
        )
    return span
