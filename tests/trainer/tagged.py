"""A small dataset with a class for each sentence and a tag for each token, over real parses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from clients.benchmarks import SAMPLE
from featurestore import DatasetHandle, ExampleRow, FeatureStore
from service.parsers import Limits, ParseInput, Parser
from service.tokenizers import LoadedTokenizer
from syntax.alignment import segment_features
from syntax.examples import DatasetSpec, LabelSpec
from syntax.fingerprint import fingerprint
from syntax.trees.parse import Parse

TAGS = LabelSpec("tags", "tags", ("O", "B-THING", "I-THING", "B-ACT", "I-ACT"))
ERRORS = LabelSpec("errors", "tags", ("c", "i"))
INTENT = LabelSpec("intent", "class", ("short", "long"))
NAME = "tagged"


def append_tagged(
    store: FeatureStore,
    parser: Parser,
    tokenizer: LoadedTokenizer,
    split: str,
    lang: str = "en",
    *,
    blind: bool = False,
) -> None:
    """The bundled sentences: nouns are things, verbs acts and errors; long ones of one intent."""
    spec = DatasetSpec(NAME, split, lang, ("text",), (INTENT, TAGS, ERRORS), "pretokenized")
    handle = DatasetHandle(
        spec, tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens, matrices=False
    )
    store.describe(parser.identity.fingerprint, "parser", {"name": parser.identity.name})
    lines = enumerate(sentences())
    rows = [_row(parser, tokenizer, seq, line) for seq, line in lines]
    store.features.append(handle, [replace(row, labels={}) for row in rows] if blind else rows)


def sentences() -> list[str]:
    """Fifty sentences."""
    assert SAMPLE.bundled is not None
    return Path(SAMPLE.bundled, "sample.txt").read_text("utf-8").splitlines()


def _row(parser: Parser, tokenizer: LoadedTokenizer, seq: int, line: str) -> ExampleRow:
    own = parser.parse(ParseInput("raw", line), Limits())
    tokens = tuple(own.form)
    parse = parser.parse(ParseInput("pretokenized", tokens=tokens), Limits())
    features = segment_features(parse, *tokenizer.encode(parse.text))
    identity = parser.identity.fingerprint
    return ExampleRow(
        seq,
        f"sentence-{seq}",
        fingerprint([seq, tokens]),
        identity,
        (parse.text,),
        (fingerprint([identity, parse.text]),),
        (features,),
        {
            "intent": INTENT.names[len(tokens) > 9],
            "tags": _tags(parse),
            "errors": tuple("i" if upos == "VERB" else "c" for upos in parse.upos),
        },
        (np.stack([parse.word_start, parse.word_end], axis=1).astype(np.int32),),
    )


def _tags(parse: Parse) -> tuple[str, ...]:
    kinds = {"NOUN": "B-THING", "PROPN": "B-THING", "PRON": "B-THING", "VERB": "B-ACT"}
    return tuple(kinds.get(upos or "", "O") for upos in parse.upos)
