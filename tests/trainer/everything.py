"""A small dataset with a label for each kind of task, over real parses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from featurestore import DatasetHandle, ExampleRow, FeatureStore
from service.parsers import Limits, ParseInput, Parser
from service.tokenizers import LoadedTokenizer
from syntax.alignment import segment_features
from syntax.batches import SegmentFeatures
from syntax.examples import DatasetSpec, LabelSpec, SpanLabel
from syntax.fingerprint import fingerprint
from syntax.trees.parse import Parse
from tests.trainer.tagged import INTENT, TAGS, sentences
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

NAME: Final = "everything"
EXAMPLES: Final = 24
DEV: Final = 12
FIELDS: Final = ("passage", "question", "other")
QUESTION: Final = "What comes last?"
CHOICE: Final = LabelSpec("choice", "class", ("A", "B"))
ANSWERS: Final = LabelSpec("answers", "spans", field="passage")

TASKS: Final = {
    "sequence_classification.v1": ("label=intent", 'template=["passage"]'),
    "token_classification.v1": ("label=tags", 'template=["passage"]'),
    "intent_slots.v1": ("intent=intent", "slots=tags", 'template=["passage"]'),
    "multiple_choice.v1": ("label=choice", 'template=["question passage", "question other"]'),
    "extractive_qa.v1": ('template=["question passage"]', "truncation=only_second", "stride=4"),
}
"""What each task needs to read the dataset."""


def recipe_for(task: str, *settings: str) -> Recipe:
    """A short run of the task, with every part of the model at work."""
    common = [
        *(f"task.name={task}", f"data.dataset={NAME}", *TASKS[task], "max_length=24"),
        *("epochs=3", "batch_size=4", "learning_rate=0.003", "warmup_steps=2"),
        *("checkpoint_every=3", "evaluate_every=7", "log_every=1"),
    ]
    return with_settings(RECIPES["sample"](), [*common, *settings])


def two_streams(*settings: str, **options: Any) -> Recipe:
    """Classes of texts, and beside them tags of tokens."""
    recipe = recipe_for("sequence_classification.v1", "epochs=2")
    tags = recipe_for("token_classification.v1")
    data = {**tags.to_json()["data"], "train_split": "dev"}
    stream = {"name": "tags", "data": data, "task": tags.to_json()["task"], "share": 0.3}
    return with_settings(recipe, [f"streams={json.dumps([{**stream, **options}])}", *settings])


def append_everything(
    store: FeatureStore,
    parser: Parser,
    tokenizer: LoadedTokenizer,
    split: str,
    count: int,
    first: int = 0,
) -> None:
    """Some of the bundled sentences."""
    spec = DatasetSpec(NAME, split, "en", FIELDS, (INTENT, TAGS, CHOICE, ANSWERS), "pretokenized")
    handle = DatasetHandle(
        spec, tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens, matrices=False
    )
    store.describe(parser.identity.fingerprint, "parser", {"name": parser.identity.name})

    def read(text: str) -> tuple[Parse, SegmentFeatures]:
        tokens = tuple(parser.parse(ParseInput("raw", text), Limits()).form)
        parse = parser.parse(ParseInput("pretokenized", tokens=tokens), Limits())
        return parse, segment_features(parse, *tokenizer.encode(parse.text))

    rows = [_row(parser, read, seq) for seq in range(first, first + count)]
    store.features.append(handle, rows)


def _row(
    parser: Parser, read: Callable[..., tuple[Parse, SegmentFeatures]], seq: int
) -> ExampleRow:
    lines, identity = sentences(), parser.identity.fingerprint
    right, wrong = read(lines[seq]), read(lines[seq - 1])
    pairs = (right, read(QUESTION), wrong)
    parses = tuple(parse for parse, _ in pairs)
    text, last = right[0].text, right[0].word_start[-1]
    kinds = {"NOUN": "B-THING", "PROPN": "B-THING", "PRON": "B-THING", "VERB": "B-ACT"}
    labels = {
        "intent": INTENT.names[len(right[0].form) > 9],
        "tags": tuple(kinds.get(upos or "", "O") for upos in right[0].upos),
        "choice": CHOICE.names[0],
        "answers": (SpanLabel(last, right[0].word_end[-1]),),
    }
    return ExampleRow(
        seq,
        f"example-{seq}",
        fingerprint([seq, text]),
        identity,
        tuple(parse.text for parse in parses),
        tuple(fingerprint([identity, parse.text]) for parse in parses),
        tuple(features for _, features in pairs),
        labels,
        tuple(_tokens(parse) for parse in parses),
    )


def _tokens(parse: Parse) -> np.ndarray:
    return np.stack([parse.word_start, parse.word_end], axis=1).astype(np.int32)
