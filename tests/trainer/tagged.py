"""A small dataset with a class for each sentence and a tag for each token, over real parses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from clients.benchmarks import SAMPLE
from featurestore import ExampleRow, FeatureStore
from service.parsers import Parser
from service.tokenizers import LoadedTokenizer
from syntax.examples import DatasetSpec, LabelSpec
from syntax.trees.parse import Parse
from tests.trainer.rows import row_of, tokens_parsed, write_rows

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
    rows = [_row(parser, tokenizer, *one) for one in enumerate(sentences())]
    chosen = [replace(row, labels={}) for row in rows] if blind else rows
    write_rows(store, parser, tokenizer, spec, chosen)


def sentences() -> list[str]:
    """Fifty sentences."""
    assert SAMPLE.bundled is not None
    return Path(SAMPLE.bundled, "sample.txt").read_text("utf-8").splitlines()


def _row(parser: Parser, tokenizer: LoadedTokenizer, seq: int, line: str) -> ExampleRow:
    parse = tokens_parsed(parser, line)
    errors = tuple("i" if upos == "VERB" else "c" for upos in parse.upos)
    labels = {**labels_of(parse), "errors": errors}
    identity = parser.identity.fingerprint
    return row_of(tokenizer, identity, seq, f"sentence-{seq}", [parse], labels, tokens=True)


def labels_of(parse: Parse) -> dict[str, Any]:
    """Its intent, and the tags of its words."""
    kinds = {"NOUN": "B-THING", "PROPN": "B-THING", "PRON": "B-THING", "VERB": "B-ACT"}
    tags = tuple(kinds.get(upos or "", "O") for upos in parse.upos)
    return {"intent": INTENT.names[len(parse.form) > 9], "tags": tags}
