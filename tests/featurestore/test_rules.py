"""Each rule finds a row with any other value, alone and among sound ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from featurestore import ParseRecord
from featurestore.maintenance.rules import (
    Rule,
    TextKeys,
    check_examples,
    check_features,
    check_parses,
    check_tokens,
    label_columns,
    unsound_rows,
)
from featurestore.maintenance.validate import validate_store
from featurestore.tables.encode.parses import encode_parses
from featurestore.tables.files import FileReader
from featurestore.tables.schema import EXAMPLE_COLUMNS, MATRIX_BLOBS, PARSES, TOKENS, VECTORS
from syntax.fingerprint import parse_key

from .conftest import PARSER, pairs_of
from .test_token_labels import LABELS, handle, marked, rows

__all__ = ["handle", "marked", "rows"]

AT = 5
"""The row that is changed."""


@pytest.fixture(scope="module")
def records(parses) -> list[ParseRecord]:
    """Parses under the keys of their texts."""
    return [
        ParseRecord(parse_key(PARSER, "en", "raw", parse.text), "en", PARSER, "raw", parse)
        for parse in parses
    ]


def group_of(store, name: str = "marked") -> tuple[Any, pa.Table]:
    card, table = store.features.find(name)
    reader = FileReader(table.location, schema=table.layout.schema)
    file = table.snapshot().files[0]
    columns = [column for column, _ in EXAMPLE_COLUMNS if column not in ("split", "lang")]
    labels = [column for column in label_columns(card) if column not in columns]
    return card, reader.row_group(file.path, 0, [*columns, *labels])


def altered(rows: pa.Table, column: str) -> Iterator[pa.Table]:
    """The rows with other values in one cell of a column, none among them."""
    place, kind = rows.schema.get_field_index(column), rows.schema.field(column).type
    values = rows[column].to_pylist()
    for value in (None, values[AT + 1], *others(values[AT])):
        changed = [*values[:AT], value, *values[AT + 1 :]]
        yield rows.set_column(place, column, pa.array(changed, kind))


def others(value: Any) -> list[Any]:
    """Values like one."""
    if isinstance(value, str):
        return ["", value + "x", value[:-1]]
    if isinstance(value, bytes):
        flipped = bytes([value[0] ^ 1]) + value[1:] if value else b"\x01"
        return [b"", value[:-4], value + bytes(4), flipped]
    if isinstance(value, float):
        return [-value]
    if isinstance(value, int):
        return [-1, value + 1]
    if isinstance(value, dict):
        return [{**value, "end_char": end} for end in (-1, 10_000)] + [{**value, "label": "sea"}]
    if isinstance(value, list):
        ends = [[*value[:-1], other] for other in (others(value[-1]) if value else ())]
        return [[], value[:-1], [*value, *value[-1:]], [*value[:-1], None], *ends]
    return []


def assert_finds_changes(rule: Rule, rows: pa.Table, column: str, name: str, kept=False) -> None:
    """A rule takes rows together as it takes each, and finds the changed one."""
    rule(rows)
    seen = set()
    for changed in altered(rows, column):
        found = list(unsound_rows(changed, name, rule))
        try:
            rule(changed)
        except Exception:
            assert found
        seen.add(len(found))
    assert seen <= {0, 1}
    assert kept or 1 in seen


@pytest.mark.parametrize("column", PARSES.schema.names)
@pytest.mark.parametrize("deep", [False, True])
def test_a_changed_parse_is_found(records, column, deep) -> None:
    rule = partial(check_parses, keys=TextKeys() if deep else None)
    assert_finds_changes(rule, encode_parses(records[25:33]), column, "key")


@pytest.mark.parametrize(
    "column",
    ["example_id", "example_key", "seq", "segment_lengths", *VECTORS, *MATRIX_BLOBS],
)
def test_a_changed_example_is_found(marked, column) -> None:
    card, rows = group_of(marked)
    assert_finds_changes(partial(check_examples, card), rows, column, "example_id")


@pytest.mark.parametrize(
    "column", ["parser", "texts", "parse_keys", "segment_lengths", *VECTORS, *MATRIX_BLOBS]
)
def test_features_of_another_parse_are_found(marked, column) -> None:
    card, rows = group_of(marked)
    rule = partial(check_features, marked, card)
    assert_finds_changes(rule, rows, column, "example_id", kept=column in MATRIX_BLOBS)


@pytest.mark.parametrize("column", ["texts", *TOKENS, *(label.name for label in LABELS)])
def test_labels_that_do_not_fit_are_found(marked, column) -> None:
    card, rows = group_of(marked)
    assert_finds_changes(partial(check_tokens, card), rows, column, "example_id")


def test_rows_that_were_rewritten_are_sound(marked, records) -> None:
    marked.parses.append(records[:5])
    marked.compact()
    card, _ = marked.features.find("marked")
    marked.features.delete(card, ["0" * 32, group_of(marked)[1]["example_key"][0].as_py()])
    report = validate_store(marked, deep=True)
    assert (report.parses, report.examples) == (40, 39)
    assert [one for one in report.problems if "described" not in one.message] == []


def test_examples_without_matrices_or_rows_are_sound(store, make_handle, records) -> None:
    store.features.append(replace(make_handle(), matrices=False), pairs_of(records)[:3])
    card, some = group_of(store, "pairs")
    check_examples(card, some)
    assert not list(unsound_rows(some.slice(0, 0), "example_id", partial(check_examples, card)))
