"""Whether stored labels are known ones, and tokens, tags and spans fit their texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from featurestore.maintenance.validate_deep import row_name, told
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.columns import binary_numbers
from featurestore.tables.schema import TOKENS
from syntax.errors import LabelError, StoreError
from syntax.examples import SpanLabel
from syntax.labels import Offsets, check_labels


def label_columns(card: DatasetCard) -> list[str]:
    """The columns that `wrong_labels` reads beside ids and texts."""
    return [*TOKENS, *(label.name for label in card.labels)]


def wrong_labels(card: DatasetCard, rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Examples with an unknown class, or tags or spans that do not fit: id, what is wrong.

    Args:
        card: The dataset's.
        rows: Rows of its table, with ids, texts and `label_columns`.
    """
    for at in range(rows.num_rows):
        row = rows.slice(at, 1)
        try:
            _check(card, row)
        except Exception as error:  # damaged bytes may fail anywhere
            yield row_name(row, "example_id"), told(error)


def _check(card: DatasetCard, row: pa.Table) -> None:
    values = {name: row[name][0].as_py() for name in ("texts", "token_counts")}
    tokens = _tokens(row, values["texts"], values["token_counts"])
    given = {label.name: _given(row[label.name][0].as_py()) for label in card.labels}
    check_labels(card.labels, card.fields, given, values["texts"], tokens)
    for label in card.labels:
        value = given[label.name]
        if label.kind == "class" and value is not None and value not in label.names:
            names = ", ".join(label.names)
            raise LabelError(f"label {label.name} is {value!r}; expected one of {names}")


def _tokens(row: pa.Table, texts: Sequence[str], counts: Sequence[int] | None) -> list[Offsets]:
    """The tokens of each segment; none where nobody recorded them."""
    pairs = binary_numbers(row["token_offsets"], "int32")
    counts = [0] * len(texts) if counts is None else counts
    if (len(counts), 2 * sum(counts)) != (len(texts), len(pairs)):
        raise StoreError(f"token_offsets holds {len(pairs)} numbers for {counts} tokens")
    tokens = np.split(pairs.reshape(-1, 2), np.cumsum(counts)[:-1])
    for text, offsets in zip(texts, tokens, strict=True):
        if not _in_order(offsets, len(text)):
            raise StoreError(f"tokens are not in order within the {len(text)} characters of a text")
    return tokens


def _in_order(offsets: Offsets, length: int) -> bool:
    starts, ends = np.pad(offsets, ((1, 1), (0, 0)), constant_values=((0, length), (0, 0))).T
    return bool(
        (np.diff(starts) >= 0).all() and (np.diff(ends) >= 0).all() and (starts <= ends).all()
    )


def _given(value: Any) -> Any:
    """A stored label as an example has it."""
    if not isinstance(value, list):
        return value
    return tuple(SpanLabel(**item) if isinstance(item, dict) else item for item in value)
