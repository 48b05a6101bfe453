"""Rules for stored rows: parses, examples, and what follows from texts and parses.

A rule takes rows of one table and raises the error of an unsound one; damaged bytes may raise any
error. Checking rows one by one takes five to ten times as long as together, so `unsound_rows`
does so only where some are unsound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from featurestore.records import ParseRecord, key_bytes
from featurestore.store import FeatureStore
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.blobs import many_matrix_blobs
from featurestore.tables.encode.columns import are_there, binary_numbers, list_parts, one_array
from featurestore.tables.encode.parses import parse_columns, unpack_parses
from featurestore.tables.fingerprints import read_content
from featurestore.tables.schema import MATRIX_BLOBS, TOKENS, VECTORS
from syntax.alignment import batch_features
from syntax.alignment.align import are_forests, reject_trees
from syntax.batches import SegmentFeatures
from syntax.errors import InputError, LabelError, ParsebankError, StoreError, UnknownKeyError
from syntax.examples import SpanLabel
from syntax.fingerprint import parse_key
from syntax.labels import check_labels, is_local

Rule = Callable[[pa.Table], None]

_DERIVED: Final = tuple(
    column.name
    for column in fields(SegmentFeatures)
    if column.name in VECTORS and column.name not in ("input_ids", "offsets")
)

_TEXT_MODES: Final = frozenset({"raw", "sentence"})
_GIVEN_TOKENS: Final = frozenset({"pretokenized", "tokens_mwt"})

MOST_WORDS: Final = 20_000
"""Limits of words up to which keys are looked for: longer sentences take minutes to parse."""

_USUAL_LIMITS: Final = (
    *(10 * n for n in range(1, 101)),
    *(64, 128, 256, 512, 1024, 1200, 1500, 2000, 2048, 2500, 3000, 4000, 4096, 5000, 10_000),
)
"""Limits that are tried for every key; the others one by one, for the first `_SEARCHES` keys."""

_SEARCHES: Final = 3


def unsound_rows(rows: pa.Table, column: str, rule: Rule) -> Iterator[tuple[str, str]]:
    """Name, as ``column`` has it, and fault of each row that breaks a rule."""
    with suppress(Exception):
        rule(rows)
        return
    for row in (rows.slice(at, 1) for at in range(rows.num_rows)):
        try:
            rule(row)
        except Exception as error:
            name = row[column][0].as_buffer()  # it may be damaged, too
            is_known = isinstance(error, ParsebankError)
            yield (
                "?" if name is None else name.to_pybytes().decode(errors="replace"),
                str(error) if is_known else f"cannot be read: {error!r}",
            )


def check_keys(rows: pa.Table, column: str) -> None:
    key_bytes(list(map(str, rows[column].to_pylist())))


def check_descriptions(rows: pa.Table) -> None:
    for fingerprint, content in zip(rows["fingerprint"], rows["content"], strict=True):
        read_content(fingerprint.as_py(), content.as_py())


def check_parses(rows: pa.Table, keys: TextKeys | None = None) -> None:
    """Check that parses are forests within their texts, and packed as their columns say.

    With ``keys``, check also that keys are those of the texts.
    """
    check_keys(rows, "key")
    records = unpack_parses(rows["key"].to_pylist(), rows["record"])
    parses = [record.parse for record in records]
    columns = {
        name: pa.array([getattr(record, name) for record in records], pa.string())
        for name in ("lang", "parser", "mode")
    }
    columns.update(parse_columns(parses))
    if not all(one_array(rows[name]).equals(column) for name, column in columns.items()):
        raise StoreError("the packed record differs from the columns")
    for parse in parses:
        ends = (parse.word_end, parse.token_end, parse.sentence_end)
        if any(max(column, default=0) > len(parse.text) for column in ends):
            raise InputError("a character offset lies outside the text")
    if not are_forests(parses):
        for parse in parses:
            reject_trees(parse)
        raise InputError("the sentences of a parse do not cover its words")
    if keys is not None:
        for record in records:
            keys.check(record)


def check_examples(card: DatasetCard, rows: pa.Table) -> None:
    """Check names, places, sizes of vectors and ids, and that matrices follow from heads."""
    check_keys(rows, "example_key")
    for name in rows["example_id"].to_pylist():
        if not name:
            raise StoreError(f"example_id is {name!r}; an example has a name that is not empty")
    for seq in rows["seq"].to_pylist():
        if seq is None or seq < 0:
            raise StoreError(f"seq is {seq}; places in the order of a split are 0 or more")
    lengths = _of_segments(card, rows, "segment_lengths")
    for name, dtype in VECTORS.items():
        held = _sizes(rows[name]) / np.dtype(dtype).itemsize
        expected = lengths.sum(axis=1) * (2 if name == "offsets" else 1)
        for at in np.flatnonzero(held != expected):
            raise StoreError(f"{name} holds {held[at]:g} numbers; {expected[at]} were expected")
    ids, count = _vector(rows, "input_ids"), card.special_tokens.vocab_size
    for wrong in ids[(ids < 0) | (ids >= count)]:
        raise StoreError(f"input_ids holds {wrong}; ids of the tokenizer are 0 to {count - 1}")
    stored = [one_array(rows[name]) for name in MATRIX_BLOBS]
    has_any = np.any([column.is_valid() for column in stored], axis=0)
    heads = _cut(_vector(rows, "head"), lengths)
    chosen = np.repeat(has_any, lengths.shape[1]).tolist()
    derived = many_matrix_blobs([head for head, is_in in zip(heads, chosen, strict=True) if is_in])
    for number, (name, column) in enumerate(zip(MATRIX_BLOBS, stored, strict=True)):
        own = column.filter(pa.array(has_any))
        parts, blobs = list_parts(pa.chunked_array([own]))
        is_whole = not own.null_count and (np.diff(parts) == lengths.shape[1]).all()
        if not is_whole or blobs.to_pylist() != [matrices[number] for matrices in derived]:
            raise StoreError(f"the stored {name} differs from the one derived from head")


def check_features(store: FeatureStore, card: DatasetCard, rows: pa.Table) -> None:
    """Check that texts, parsers and vectors of examples are those of their parses in the store."""
    count = len(card.fields)
    lengths = _of_segments(card, rows, "segment_lengths")
    keys, texts = (_segments(card, rows, name).to_pylist() for name in ("parse_keys", "texts"))
    parsers = rows["parser"].to_pylist()
    found = store.parses.get_many(list(dict.fromkeys(keys)))
    for at, (key, text) in enumerate(zip(keys, texts, strict=True)):
        if key not in found:
            raise StoreError(f"the parse {key} of segment {at % count} is not in the store")
        if found[key].parse.text != text:
            raise StoreError(f"segment {at % count} has another text than its parse {key}")
        _check_parser(store, parsers[at // count], at % count, found[key])
    parses, offsets = [found[key].parse for key in keys], _vector(rows, "offsets").reshape(-1, 2)
    segments = batch_features(
        parses, _vector(rows, "input_ids"), offsets, lengths.reshape(-1).tolist()
    )
    for name in _DERIVED:
        stored, derived = _vector(rows, name), [getattr(segment, name) for segment in segments]
        if np.array_equal(np.concatenate(derived), stored):
            continue
        for at, (own, vector) in enumerate(zip(derived, _cut(stored, lengths), strict=True)):
            if not np.array_equal(own, vector):
                raise StoreError(f"the stored {name} of segment {at % count} is not its parse's")


def _check_parser(store: FeatureStore, parser: str, number: int, record: ParseRecord) -> None:
    """Check that a segment was parsed by its example's parser, or by its own of several."""
    if record.parser == parser:
        return
    several: list[str] = []
    with suppress(UnknownKeyError):
        several = store.fingerprints.resolve(str(parser)).get("parsers", several)
    if several[number : number + 1] != [record.parser]:
        raise StoreError(
            f"segment {number} was parsed by {record.parser}; the example's parser is {parser}"
        )


def label_columns(card: DatasetCard) -> list[str]:
    """The columns that `check_tokens` reads beside texts."""
    return [*TOKENS, *(label.name for label in card.labels)]


def check_tokens(card: DatasetCard, rows: pa.Table) -> None:
    """Check that tokens lie in order within their texts, labels fit them, and classes are known."""
    texts = _segments(card, rows, "texts")
    recorded = are_there(rows["token_counts"])
    counts = np.zeros((rows.num_rows, len(card.fields)), np.int64)
    counts[recorded] = _of_segments(card, rows.filter(pa.array(recorded)), "token_counts")
    held, expected = _sizes(rows["token_offsets"]) / 4, 2 * counts.sum(axis=1)
    for at in np.flatnonzero(held != expected):
        numbers, tokens = f"{held[at]:g}", counts[at].tolist()
        raise StoreError(f"token_offsets holds {numbers} numbers for {tokens} tokens")
    tokens = binary_numbers(rows["token_offsets"], "int32").reshape(-1, 2)
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    _check_order(tokens, counts.reshape(-1), lengths)
    for label in card.labels:
        for value in rows[label.name].unique().to_pylist() if label.kind == "class" else ():
            if value is not None and value not in label.names:
                names = ", ".join(label.names)
                raise LabelError(f"label {label.name} is {value!r}; expected one of {names}")
    if not any(map(is_local, card.labels)):
        return
    written, cut = texts.to_pylist(), _cut(tokens, counts)
    values = {label.name: rows[label.name].to_pylist() for label in card.labels}
    for row in range(rows.num_rows):
        start, end = row * len(card.fields), (row + 1) * len(card.fields)
        given = {name: _given_label(column[row]) for name, column in values.items()}
        check_labels(card.labels, card.fields, given, written[start:end], cut[start:end])


def _check_order(
    tokens: NDArray[np.int32], counts: NDArray[np.int64], lengths: NDArray[np.integer]
) -> None:
    """Check that the tokens (T, 2) lie within their texts, starts and ends in order."""
    owner = np.repeat(np.arange(len(counts)), counts)
    is_wrong = (tokens < 0).any(axis=1) | (tokens[:, 0] > tokens[:, 1])
    is_wrong |= tokens[:, 1] > lengths[owner]
    is_wrong[1:] |= (np.diff(owner) == 0) & (np.diff(tokens, axis=0) < 0).any(axis=1)
    for at in np.flatnonzero(is_wrong):
        raise StoreError(
            f"tokens are not in order within the {lengths[owner[at]]} characters of a text"
        )


def _given_label(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(SpanLabel(**item) if isinstance(item, dict) else item for item in value)


def _of_segments(card: DatasetCard, rows: pa.Table, name: str) -> NDArray[np.int64]:
    """A column of numbers of segments. *Shape:* (rows, segments)."""
    numbers: NDArray[np.int64] = _segments(card, rows, name).to_numpy().astype(np.int64)
    for number in numbers[numbers < 0]:
        raise StoreError(f"{name} holds {number}; it must not be negative")
    return numbers.reshape(rows.num_rows, len(card.fields))


def _segments(card: DatasetCard, rows: pa.Table, name: str) -> pa.Array:
    parts, values = list_parts(rows[name])
    for count in np.diff(parts)[np.diff(parts) != len(card.fields)]:
        raise StoreError(f"{name} holds {count} segments, and the fields are {card.fields}")
    if values.null_count:
        raise StoreError(f"{name} holds null")
    return values


def _vector(rows: pa.Table, name: str) -> NDArray[Any]:
    return binary_numbers(rows[name], VECTORS[name])


def _sizes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Bytes of each row, 0 for null. *Shape:* (rows,)."""
    sizes: NDArray[np.int64] = pc.binary_length(column).fill_null(0).cast("int64").to_numpy()
    return sizes


def _cut(values: NDArray[Any], lengths: NDArray[np.int64]) -> list[NDArray[Any]]:
    """Consecutive parts of these lengths, the last with all that are left."""
    return np.split(values, np.cumsum(lengths)[:-1]) if lengths.size else []


class TextKeys:
    """Checks that the keys of parses are those of their texts.

    Parses do not record the limit of words at which a service splits long sentences, though it is
    part of their keys: limits are tried.
    """

    def __init__(self) -> None:
        self._limits: dict[int, None] = {}
        self._searched: set[str] = set()
        """Keys that no limit explains. Where there are several, the texts have been changed."""

    def check(self, record: ParseRecord) -> None:
        """Refuse a key of something else. Gold trees and re-tokenized tokens cannot be checked."""
        possible = list(possible_keys(record))
        if not possible or record.key in possible or self._is_split_at_some_limit(record):
            return
        tried = f"any limit of words up to {MOST_WORDS:,}"
        if record.key not in self._searched:
            tried = f"any usual limit of words (all were tried for {_SEARCHES} keys, in vain)"
        raise InputError(
            f"the key of its text is {possible[0]}; it is not the key with long sentences split at "
            f"{tried} either: text or key has been changed"
        )

    def _is_split_at_some_limit(self, record: ParseRecord) -> bool:
        made_of = _made_of(record)
        if made_of is None or record.key in self._searched:
            return False
        others = range(1, MOST_WORDS) if len(self._searched) < _SEARCHES else ()
        for limit in (*self._limits, *_USUAL_LIMITS, *others):
            if record.key == parse_key(*made_of, "split", limit):
                self._limits[limit] = None
                return True
        if others:
            self._searched.add(record.key)
        return False


def possible_keys(record: ParseRecord) -> Iterator[str]:
    """The keys that a parse of such a text may have, where the parse shows what it was made of."""
    if made_of := _made_of(record):
        for long in ("refuse", "split"):
            yield parse_key(*made_of, long)


def _made_of(record: ParseRecord) -> tuple[str, str, str, str | None, list[str] | None] | None:
    """Parser, language, mode, and the text or tokens of a parse; None if it does not show them."""
    parse, text, tokens = record.parse, None, None
    if record.mode in _TEXT_MODES:
        text = parse.text
    elif record.mode in _GIVEN_TOKENS:
        spans = zip(parse.token_start, parse.token_end, strict=True)
        tokens = [parse.text[start:end] for start, end in spans]
    else:
        return None
    return record.parser, record.lang, record.mode, text, tokens
