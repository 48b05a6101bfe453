"""A small dataset with a label for each kind of task, over real parses."""

from __future__ import annotations

import json
from typing import Any, Final

from featurestore import ExampleRow, FeatureStore
from service.parsers import Parser
from service.tokenizers import LoadedTokenizer
from syntax.examples import DatasetSpec, LabelSpec, SpanLabel
from tests.trainer.rows import row_of, tokens_parsed, write_rows
from tests.trainer.tagged import INTENT, TAGS, labels_of, sentences
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
    rows = [_row(parser, tokenizer, seq) for seq in range(first, first + count)]
    write_rows(store, parser, tokenizer, spec, rows)


def _row(parser: Parser, tokenizer: LoadedTokenizer, seq: int) -> ExampleRow:
    lines = sentences()
    parses = [tokens_parsed(parser, text) for text in (lines[seq], QUESTION, lines[seq - 1])]
    answer = SpanLabel(parses[0].word_start[-1], parses[0].word_end[-1])
    labels = {**labels_of(parses[0]), "choice": CHOICE.names[0], "answers": (answer,)}
    identity = parser.identity.fingerprint
    return row_of(tokenizer, identity, seq, f"example-{seq}", parses, labels, tokens=True)
