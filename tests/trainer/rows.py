"""Rows of datasets, made of texts as a backfill makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from featurestore import DatasetHandle, ExampleRow, FeatureStore, ParseRecord
from service.parsers import Limits, ParseInput, Parser
from service.tokenizers import LoadedTokenizer
from syntax.alignment import segment_features
from syntax.examples import DatasetSpec, Example
from syntax.fingerprint import fingerprint
from syntax.trees.parse import Parse


def handle_of(spec: DatasetSpec, tokenizer: LoadedTokenizer) -> DatasetHandle:
    """A dataset of pieces of the tokenizer."""
    named = (tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens)
    return DatasetHandle(spec, *named, matrices=False)


def row_of(
    tokenizer: LoadedTokenizer,
    parser: str,
    seq: int,
    name: str,
    parses: Sequence[Parse],
    labels: Mapping[str, Any],
    tokens: bool = False,
) -> ExampleRow:
    """An example of some parses by the parser of an identity; with the places of tokens or not."""
    texts = tuple(parse.text for parse in parses)
    features = tuple(segment_features(parse, *tokenizer.encode(parse.text)) for parse in parses)
    keys = tuple(fingerprint([parser, text]) for text in texts)
    key = fingerprint([name, keys])
    places = tuple(
        np.stack([parse.word_start, parse.word_end], axis=1).astype(np.int32) for parse in parses
    )
    made = (seq, name, key, parser, texts, keys, features, labels)
    return ExampleRow(*made, places) if tokens else ExampleRow(*made)


def parsed_row(
    parser: Parser,
    tokenizer: LoadedTokenizer,
    seq: int,
    name: str,
    texts: Sequence[str],
    labels: Mapping[str, Any],
    mode: str = "raw",
) -> ExampleRow:
    """An example of some texts."""
    parses = [parser.parse(ParseInput(mode, text), Limits()) for text in texts]
    return row_of(tokenizer, parser.identity.fingerprint, seq, name, parses, labels)


def read_row(parser: Parser, tokenizer: LoadedTokenizer, seq: int, item: Example) -> ExampleRow:
    """An example that a reader found."""
    texts = [part.text for part in item.segments]
    return parsed_row(parser, tokenizer, seq, item.example_id, texts, item.labels)


def tokens_parsed(parser: Parser, text: str) -> Parse:
    """The parse of the words of a text as given tokens."""
    tokens = tuple(parser.parse(ParseInput("raw", text), Limits()).form)
    return parser.parse(ParseInput("pretokenized", tokens=tokens), Limits())


def write_rows(
    store: FeatureStore,
    parser: Parser,
    tokenizer: LoadedTokenizer,
    spec: DatasetSpec,
    rows: Iterable[ExampleRow],
) -> None:
    """Write them, and who parsed them."""
    store.describe(parser.identity.fingerprint, "parser", {"name": parser.identity.name})
    store.features.append(handle_of(spec, tokenizer), [*rows])


def keep_parses(
    store: FeatureStore, parser: Parser, name: str, split: str, mode: str = "raw"
) -> None:
    """Write the parses of a dataset's texts, which `write_rows` does not."""
    identity, records = parser.identity.fingerprint, {}
    data = store.dataset(name, split=split, lang="*")
    for row in data.columns(["parse_keys", "texts"]).to_pylist():
        for key, text in zip(row["parse_keys"], row["texts"], strict=True):
            tokens = tuple(text.split(" ")) if mode == "pretokenized" else ()
            given = ParseInput(mode, tokens=tokens) if tokens else ParseInput(mode, text)
            parse = parser.parse(given, Limits())
            records[key] = ParseRecord(key, "en", identity, mode, parse)
    store.parses.append(list(records.values()))
