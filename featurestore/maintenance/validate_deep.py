"""Checks that derive again what is stored: keys, features and labels, against texts and parses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.records import ParseRecord
from featurestore.sql.session import named_faults
from featurestore.store import FeatureStore
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.columns import binary_numbers
from featurestore.tables.schema import TOKENS, VECTORS
from syntax.alignment import segment_features
from syntax.batches import SegmentFeatures
from syntax.errors import InputError, LabelError, ParsebankError, StoreError, UnknownKeyError
from syntax.examples import SpanLabel
from syntax.keys import parse_key
from syntax.labels import Offsets, check_labels

_TEXT_MODES: Final = frozenset({"raw", "sentence"})
_GIVEN_TOKENS: Final = frozenset({"pretokenized", "tokens_mwt"})

_MOST_WORDS: Final = 20_000
"""Limits of words up to which keys are looked for: longer sentences take minutes to parse."""

_USUAL: Final = (
    *(10 * n for n in range(1, 101)),
    *(64, 128, 256, 512, 1024, 1200, 1500, 2000, 2048, 2500, 3000, 4000, 4096, 5000, 10_000),
)
"""Limits that are tried for every key; the others one by one, for the first `_SEARCHES` keys."""

_SEARCHES: Final = 3

_LIMITS: Final[dict[int, None]] = {}
"""Limits that were found, so that each is looked for once."""

_SEARCHED: Final[set[str]] = set()
"""Keys that no limit explains. Where there are several, the texts have been changed."""


def forget_searches() -> None:
    """Look for limits of words anew, as for another store."""
    _LIMITS.clear()
    _SEARCHED.clear()


def check_key(record: ParseRecord) -> None:
    """Check that a parse's key is that of its text.

    Gold trees and re-tokenized tokens cannot be checked: what they were made from is not in the
    parse.

    Raises:
        InputError: The key is another one.
    """
    first = None
    for key in possible_keys(record):
        if key == record.key:
            return
        first = first or key
    if first is None or _is_split_at_some_limit(record):
        return
    tried = f"any limit of words up to {_MOST_WORDS:,}"
    if record.key not in _SEARCHED:
        tried = f"any usual limit of words (all were tried for {_SEARCHES} keys, in vain)"
    raise InputError(
        f"the key of its text is {first}; it is not the key with long sentences split at {tried} "
        "either: text or key has been changed"
    )


def _is_split_at_some_limit(record: ParseRecord) -> bool:
    """Whether a service with another limit of words made the key; parses do not record limits."""
    made_of = _made_of(record)
    if made_of is None or record.key in _SEARCHED:
        return False
    others = range(1, _MOST_WORDS) if len(_SEARCHED) < _SEARCHES else ()
    for limit in (*_LIMITS, *_USUAL, *others):
        if record.key == parse_key(*made_of, "split", limit):
            _LIMITS[limit] = None
            return True
    if others:
        _SEARCHED.add(record.key)
    return False


def possible_keys(record: ParseRecord) -> Iterator[str]:
    """The keys that a parse of such a text may have, where the parse shows what it was made of."""
    if made_of := _made_of(record):
        for long in ("refuse", "split"):
            yield parse_key(*made_of, long)


def _made_of(record: ParseRecord) -> tuple[str, str, str, str | None, list[str] | None] | None:
    """Parser, language, mode, and the text or tokens of a parse; None if it does not show them."""
    parse = record.parse
    text, tokens = None, None
    if record.mode in _TEXT_MODES:
        text = parse.text
    elif record.mode in _GIVEN_TOKENS:
        spans = zip(parse.token_start, parse.token_end, strict=True)
        tokens = [parse.text[start:end] for start, end in spans]
    else:
        return None
    return record.parser, record.lang, record.mode, text, tokens


def unknown_fingerprints(store: FeatureStore) -> Iterator[tuple[str, str]]:
    """Fingerprints of parsers and tokenizers without a description: table, fingerprint."""
    known = {kind: store.fingerprints.all(kind) for kind in ("parser", "tokenizer")}
    query = """
        select 'parses' as "table", parser from parses
        union select 'examples', parser from examples order by "table" desc, parser
    """
    with named_faults():
        rows = store.sql(query).fetchall()
    for table, parser in rows:
        if parser not in known["parser"]:
            yield table, parser
    for card, _ in store.features.tables():
        if card.tokenizer_fingerprint not in known["tokenizer"]:
            yield f"datasets/{card.path}", card.tokenizer_fingerprint


def repeated_rows(store: FeatureStore) -> int:
    """Parses and examples that have several rows."""
    return store.parses.repeats() + sum(
        store.features.repeats(card) for card, _ in store.features.tables()
    )


@named_faults()
def repeated_places(store: FeatureStore) -> int:
    """Places in the order of a split, language and parser that several names have."""
    query = """
        select count(*) from (
            select dataset, tokenizer, split, lang, parser, seq from examples
            group by all having count(distinct example_id) > 1
        )
    """
    ((found,),) = store.sql(query).fetchall()
    return int(found)


def wrong_examples(store: FeatureStore, rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Examples of other parses, texts, parsers or vectors than they have: id, what is wrong.

    Args:
        store: Where the parses are.
        rows: Rows of a dataset table, with ids, parsers, texts, parse keys, lengths and vectors.
    """
    records: dict[str, ParseRecord] = {}
    # If one parse or key of the row group is damaged, each is read by itself.
    with suppress(Exception):
        keys = rows["parse_keys"].combine_chunks().flatten().to_pylist()
        records = store.parses.get_many(list(dict.fromkeys(keys)))
    for at in range(rows.num_rows):
        row = rows.slice(at, 1)
        try:
            _check_example(store, row, records)
        except Exception as error:  # damaged bytes may fail anywhere
            yield row_name(row, "example_id"), message_of(error)


def row_name(row: pa.Table, column: str) -> str:
    """The name of a row, even if its bytes are damaged."""
    name = row[column][0].as_buffer()
    return "?" if name is None else name.to_pybytes().decode(errors="replace")


def message_of(error: Exception) -> str:
    """The message of an error; of one that is not ours, with its class."""
    return str(error) if isinstance(error, ParsebankError) else f"cannot be read: {error!r}"


def _check_example(store: FeatureStore, row: pa.Table, records: dict[str, ParseRecord]) -> None:
    parser, keys, texts, lengths = (
        row[name][0].as_py() for name in ("parser", "parse_keys", "texts", "segment_lengths")
    )
    vectors = {name: binary_numbers(row[name], dtype) for name, dtype in VECTORS.items()}
    end = 0
    for number, (key, text, length) in enumerate(zip(keys, texts, lengths, strict=True)):
        start, end = end, end + length
        record = records.get(key) or store.parses.get_many([key]).get(key)
        if record is None:
            raise StoreError(f"the parse {key} of segment {number} is not in the store")
        if record.parse.text != text:
            raise StoreError(f"segment {number} has another text than its parse {key}")
        check_parser(store, parser, number, record)
        stored = {name: _cut(vectors, name, start, end) for name in VECTORS}
        derived = segment_features(record.parse, stored["input_ids"], stored["offsets"])
        for column in fields(SegmentFeatures):
            if column.name in stored and not np.array_equal(
                getattr(derived, column.name), stored[column.name]
            ):
                raise StoreError(f"the stored {column.name} of segment {number} is not its parse's")


def check_parser(store: FeatureStore, parser: str | None, number: int, record: ParseRecord) -> None:
    """Check that a segment was parsed by its example's parser, or by its own of several.

    Raises:
        StoreError: It was parsed by another.
    """
    if record.parser == parser:
        return
    several: list[str] = []
    with suppress(UnknownKeyError):
        several = store.fingerprints.resolve(str(parser)).get("parsers", several)
    if several[number : number + 1] != [record.parser]:
        raise StoreError(
            f"segment {number} was parsed by {record.parser}; the example's parser is {parser}"
        )


def _cut(vectors: dict[str, NDArray[Any]], name: str, start: int, end: int) -> NDArray[Any]:
    if name == "offsets":
        return vectors[name][2 * start : 2 * end].reshape(-1, 2)
    return vectors[name][start:end]


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
            _check_labels(card, row)
        except Exception as error:  # damaged bytes may fail anywhere
            yield row_name(row, "example_id"), message_of(error)


def _check_labels(card: DatasetCard, row: pa.Table) -> None:
    values = {name: row[name][0].as_py() for name in ("texts", "token_counts")}
    tokens = _tokens(row, values["texts"], values["token_counts"])
    given = {label.name: given_label(row[label.name][0].as_py()) for label in card.labels}
    check_label_values(card, given, values["texts"], tokens)


def check_label_values(
    card: DatasetCard, given: dict[str, Any], texts: Sequence[str], tokens: Sequence[Offsets]
) -> None:
    """Check the labels of one example.

    Args:
        card: The dataset's.
        given: Value of each label column (`given_label`).
        texts: Text of each segment.
        tokens: Tokens of each segment's text; empty for running text.

    Raises:
        LabelError: Tags or spans do not fit, or a class is unknown.
    """
    check_labels(card.labels, card.fields, given, texts, tokens)
    for label in card.labels:
        value = given[label.name]
        if label.kind == "class" and value is not None and value not in label.names:
            names = ", ".join(label.names)
            raise LabelError(f"label {label.name} is {value!r}; expected one of {names}")


def _tokens(row: pa.Table, texts: Sequence[str], counts: Sequence[int] | None) -> list[Offsets]:
    """The tokens of each segment; none where they were not recorded."""
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


def given_label(value: Any) -> Any:
    """A stored label as an example has it."""
    if not isinstance(value, list):
        return value
    return tuple(SpanLabel(**item) if isinstance(item, dict) else item for item in value)
