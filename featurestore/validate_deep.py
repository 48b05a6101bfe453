"""What only deriving it again shows: keys against texts, features against parses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.encode.columns import binary_numbers
from featurestore.records import ParseRecord
from featurestore.store import FeatureStore
from featurestore.tables.schema import VECTORS
from syntax.alignment import segment_features
from syntax.assembly import SegmentFeatures
from syntax.errors import InputError, StoreError
from syntax.keys import parse_key

_TEXT_MODES: Final = frozenset({"raw", "sentence"})


def check_key(record: ParseRecord) -> None:
    """Check that a parse's key is that of its text.

    Gold trees and re-tokenized tokens cannot be checked: what they were made from is not in the
    parse.

    Raises:
        InputError: The key is another one.
    """
    if record.key not in (possible := list(possible_keys(record))) and possible:
        raise InputError(f"the key of its text is {possible[0]}; text or key has been changed")


def possible_keys(record: ParseRecord) -> Iterator[str]:
    """The keys that a parse of such a text may have, where the parse shows what it was made of."""
    parse = record.parse
    text, tokens = None, None
    if record.mode in _TEXT_MODES:
        text = parse.text
    elif record.mode == "pretokenized":
        spans = zip(parse.token_start, parse.token_end, strict=True)
        tokens = [parse.text[start:end] for start, end in spans]
    else:
        return
    for long in ("refuse", "split"):
        yield parse_key(record.parser, record.lang, record.mode, text, tokens, long)


def unknown_fingerprints(store: FeatureStore) -> Iterator[tuple[str, str]]:
    """Fingerprints of parsers and tokenizers that nobody described: table, fingerprint."""
    known = {kind: store.fingerprints.all(kind) for kind in ("parser", "tokenizer")}
    for table in ("parses", "examples"):
        for (parser,) in store.sql(f"select distinct parser from {table} order by all").fetchall():
            if parser not in known["parser"]:
                yield table, parser
    for card, _ in store.features.tables():
        if card.tokenizer_fingerprint not in known["tokenizer"]:
            yield f"datasets/{card.path}", card.tokenizer_fingerprint


def wrong_examples(store: FeatureStore, rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Examples whose vectors are not those that their parses give: example id, what is wrong.

    Args:
        store: Where the parses are.
        rows: Rows of a dataset table, with ids, texts, parse keys, lengths and vectors.
    """
    keys = rows["parse_keys"].to_pylist()
    records = store.parses.get_many(list(dict.fromkeys(key for row in keys for key in row)))
    ids, texts = (rows[name].to_pylist() for name in ("example_id", "texts"))
    lengths = rows["segment_lengths"].to_pylist()
    for at, example_id in enumerate(ids):
        try:
            _check(rows.slice(at, 1), keys[at], texts[at], lengths[at], records)
        except (InputError, StoreError) as error:
            yield example_id, str(error)


def _check(
    row: pa.Table,
    keys: Sequence[str],
    texts: Sequence[str],
    lengths: Sequence[int],
    records: dict[str, ParseRecord],
) -> None:
    vectors = {name: binary_numbers(row[name], dtype) for name, dtype in VECTORS.items()}
    end = 0
    for number, (key, text, length) in enumerate(zip(keys, texts, lengths, strict=True)):
        start, end = end, end + length
        record = records.get(key)
        if record is None:
            raise StoreError(f"the parse {key} of segment {number} is not in the store")
        if record.parse.text != text:
            raise StoreError(f"segment {number} has another text than its parse {key}")
        _compare(number, record, {name: _cut(vectors, name, start, end) for name in VECTORS})


def _cut(vectors: dict[str, NDArray[Any]], name: str, start: int, end: int) -> NDArray[Any]:
    if name == "offsets":
        return vectors[name][2 * start : 2 * end].reshape(-1, 2)
    return vectors[name][start:end]


def _compare(number: int, record: ParseRecord, stored: dict[str, NDArray[Any]]) -> None:
    derived = segment_features(record.parse, stored["input_ids"], stored["offsets"])
    for column in fields(SegmentFeatures):
        if column.name in stored and not np.array_equal(
            getattr(derived, column.name), stored[column.name]
        ):
            raise StoreError(f"the stored {column.name} of segment {number} is not its parse's")
