"""Parse records as rows of the table ``parses``."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Final

import pyarrow as pa

from featurestore.records import ParseRecord, key_bytes
from featurestore.tables.encode.columns import list_column, list_parts, numpy_of, strings
from featurestore.tables.encode.packed import pack_record, unpack_record
from featurestore.tables.schema import PARSE_INTEGERS, PARSES, WORD_STRINGS
from syntax.errors import InputError, InvalidCharacterError
from syntax.trees.parse import Parse

_PLAIN = ("key", "lang", "parser", "mode")

_FEW: Final = 4
"""Rows that Arrow converts faster one by one."""


def check_record(record: ParseRecord) -> None:
    """Refuse a record that cannot be stored, before it shares a commit with others."""
    key_bytes([record.key])
    parse = record.parse
    columns = [getattr(parse, name) for name in WORD_STRINGS] + [parse.misc or []]
    try:
        "".join([parse.text, *(text for text in chain(*columns) if text)]).encode()
        array("i", chain(*(getattr(parse, name) for name in PARSE_INTEGERS)))
    except UnicodeEncodeError as error:
        raise InvalidCharacterError(
            f"parse {record.key} holds text that is not Unicode: {error}", key=record.key
        ) from error
    except (TypeError, OverflowError) as error:
        raise InputError(f"parse {record.key} cannot be stored: {error}", key=record.key) from error


def encode_parses(records: Sequence[ParseRecord]) -> pa.Table:
    try:
        key_bytes([record.key for record in records])
        plain = {
            name: pa.array([getattr(r, name) for r in records], pa.string()) for name in _PLAIN
        }
        columns = {**plain, **parse_columns([record.parse for record in records])}
        columns["record"] = pa.array(map(pack_record, records), pa.binary())
        return pa.table(columns, schema=PARSES.schema)
    except (ValueError, TypeError, OverflowError):
        # Checking each one first would cost as much as encoding them all.
        for record in records:
            check_record(record)
        raise


def parse_columns(parses: Sequence[Parse]) -> dict[str, pa.Array]:
    """The columns of parses alone, in the order of the table ``parses``: ``text``, words, spans."""
    return {
        "text": pa.array([parse.text for parse in parses], pa.string()),
        **{name: _lists(parses, name, pa.string()) for name in WORD_STRINGS},
        "misc": pa.array([parse.misc for parse in parses], pa.list_(pa.string())),
        **{name: _lists(parses, name, pa.int32()) for name in PARSE_INTEGERS},
    }


def _lists(parses: Sequence[Parse], name: str, kind: pa.DataType) -> pa.ListArray:
    rows = [getattr(parse, name) for parse in parses]
    return list_column([len(row) for row in rows], pa.array(chain.from_iterable(rows), kind))


def unpack_parses(keys: Sequence[str], packed: pa.ChunkedArray) -> list[ParseRecord]:
    return [unpack_record(*row) for row in zip(keys, packed.to_pylist(), strict=True)]


def decode_parses(table: pa.Table) -> list[ParseRecord]:
    """The records of rows with all columns of the table ``parses``; ``record`` is not read."""
    plain = [table[name].to_pylist() for name in _PLAIN]
    parses = _parses(table)
    return [
        ParseRecord(key, lang, parser, mode, parse)
        for key, lang, parser, mode, parse in zip(*plain, parses, strict=True)
    ]


def _parses(table: pa.Table) -> Iterator[Parse]:
    names = (*WORD_STRINGS, *PARSE_INTEGERS)
    columns = [_row_lists(table[name]) for name in names]
    rows = zip(table["text"].to_pylist(), table["misc"].to_pylist(), *columns, strict=True)
    for text, misc, *lists in rows:
        yield Parse(text=text, misc=misc, **dict(zip(names, lists, strict=True)))


def _row_lists(column: pa.ChunkedArray) -> list[list[Any]]:
    """The rows of a ``list<>`` column; of many, one flat conversion is far cheaper."""
    if len(column) <= _FEW:
        rows: list[list[Any]] = column.to_pylist()
        return rows
    offsets, values = list_parts(column)
    flat = strings(values) if pa.types.is_string(values.type) else numpy_of(values).tolist()
    return [flat[start:end] for start, end in pairwise(offsets.tolist())]
