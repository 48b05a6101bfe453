"""Labels of tokens and spans, and checks that they fit their texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import LabelError
from syntax.examples import LabelSpec, LabelValue, SpanLabel

Offsets = NDArray[np.int32]
"""Start and end character of each token of a text. *Shape:* (T, 2)."""

_SPAN_LABEL: Final = re.compile(r"O|[BIESLU]-.+", re.DOTALL)

LARGEST_FLOAT: Final = float(np.finfo(np.float32).max)
"""Largest absolute value of a label of kind ``float``, which is stored in 32 bits."""


def token_offsets(tokens: Sequence[str]) -> Offsets:
    """Start and end of tokens in their text, joined by single spaces. *Shape:* (T, 2), int32.

    >>> token_offsets(["New York", "is", "big"]).tolist()
    [[0, 8], [9, 11], [12, 15]]
    """
    lengths = np.fromiter(map(len, tokens), np.int32, len(tokens))
    ends = np.cumsum(lengths + 1, dtype=np.int32) - 1
    return np.stack([ends - lengths, ends], axis=1)


def are_span_labels(labels: Iterable[str]) -> bool:
    """True of labels of tokens that are all ``O`` or as ``B-LOC``, in BIO, BIOUL or BIOES."""
    return all(map(_SPAN_LABEL.fullmatch, labels))


def is_local(label: LabelSpec) -> bool:
    """True for labels of tokens or characters of one field."""
    return label.kind in ("tags", "spans")


def field_of(label: LabelSpec, fields: Sequence[str]) -> int:
    return 0 if label.field is None else fields.index(label.field)


def check_labels(
    labels: Sequence[LabelSpec],
    fields: Sequence[str],
    values: Mapping[str, LabelValue | None],
    texts: Sequence[str],
    tokens: Sequence[Offsets],
) -> None:
    """Check that tags and spans fit their texts; other kinds and ``None`` are not checked."""
    for label in filter(is_local, labels):
        value, at = values.get(label.name), field_of(label, fields)
        if value is None:
            continue
        if not isinstance(value, tuple):
            raise LabelError(f"label {label.name} is {value!r}; expected a tuple, its {label.kind}")
        if label.kind == "tags":
            given = f"label {label.name} has {len(value)} tags"
            if not len(tokens[at]):
                raise LabelError(f"{given}, but {fields[at]} came without tokens")
            if len(value) != len(tokens[at]):
                raise LabelError(
                    f"{given} for the {len(tokens[at])} tokens of {fields[at]}; give one each"
                )
            _check_names(label, value)
        else:
            _check_names(label, [_span(label, fields[at], x, len(texts[at])).label for x in value])


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
