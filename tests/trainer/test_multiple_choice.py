"""Multiple choice: the softmax is over the sequences of one example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from featurestore import DatasetHandle, ExampleRow, FeatureStore, open_store
from service.parsers import Limits, ParseInput
from syntax.alignment import segment_features
from syntax.errors import SpecError
from syntax.examples import DatasetSpec, LabelSpec
from syntax.fingerprint import fingerprint
from tests.trainer.tagged import sentences
from trainer.loop import train
from trainer.models.heads.multiple_choice import by_example
from trainer.options import DataOptions, MultipleChoiceOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.tasks import MultipleChoice

LABEL = LabelSpec("label", "class", ("A", "B"))
FIELDS = ("article", "question", "option_a", "option_b")


@pytest.fixture(scope="session")
def choices_uri(tmp_path_factory, english, tokenizer) -> str:
    """Which of two sentences is the article again."""
    uri = str(tmp_path_factory.mktemp("choices") / "store")
    lines = sentences()[:24]
    identity = english.identity.fingerprint
    parsed = {}
    for line in [*lines, "Which is it?"]:
        parse = english.parse(ParseInput("raw", line), Limits())
        parsed[line] = segment_features(parse, *tokenizer.encode(parse.text))
    rows = []
    for seq, line in enumerate(lines):
        options = [line, lines[seq - 1]][:: 1 if seq % 2 else -1]
        texts = (line, "Which is it?", *options)
        keys = tuple(fingerprint([identity, text]) for text in texts)
        label = LABEL.names[options.index(line)]
        key, parts = fingerprint([seq]), tuple(parsed[text] for text in texts)
        rows.append(
            ExampleRow(seq, f"race-{seq}", key, identity, texts, keys, parts, {"label": label})
        )
    with open_store(uri) as store:
        store.describe(identity, "parser", {"name": english.identity.name})
        for split in ("train", "dev"):
            spec = DatasetSpec("race", split, "en", FIELDS, (LABEL,))
            tokens = (tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens)
            store.features.append(DatasetHandle(spec, *tokens, matrices=False), rows)
    return uri


@pytest.fixture
def choices(choices_uri) -> Iterator[FeatureStore]:
    with open_store(choices_uri) as store:
        yield store


def test_scores_are_laid_out_by_example_and_choice(make_batch) -> None:
    batch = make_batch(sizes=(4, 4, 4, 4))
    index = {"example_index": [0, 1, 0, 1], "choice_index": [0, 1, 1, 0]}
    extras = {name: torch.tensor(values) for name, values in index.items()}
    found = by_example(torch.tensor([1.0, 2.0, 3.0, 4.0]), replace(batch, extras=extras), 2)
    assert found.tolist() == [[1.0, 3.0], [4.0, 2.0]]


TINY = (
    *("data.dataset=race", "data.tokenizer=parsebank-wordpiece-en", "encoder=parsebank-tiny"),
    *("weights=random", "threads=1", "batch_size=8", "max_length=64", "evaluate_every=null"),
    *("checkpoint_every=null",),
)


def recipes_of(task: str) -> list[str]:
    return [name for name, make in RECIPES.items() if make().task.name == task]


@pytest.mark.parametrize("name", recipes_of("multiple_choice.v1"))
def test_every_recipe_of_the_task_trains(name, choices, tmp_path) -> None:
    run = train(with_settings(RECIPES[name](), [*TINY, "max_steps=2"]), choices, tmp_path)
    assert run.progress.best.scores["examples"] == 24
    assert 0 < run.progress.losses[0] < 3


def test_a_template_of_another_size_is_refused(choices, tmp_path) -> None:
    settings = [*TINY, 'template=["article+question option_a"]']
    with pytest.raises(SpecError, match="chooses among 2, and an example became 1"):
        train(with_settings(RECIPES["sgnet-race"](), settings), choices, tmp_path)


@pytest.mark.slow
def test_it_learns_by_heart(choices, tmp_path) -> None:
    settings = [*TINY, "max_steps=150", "learning_rate=0.002", "warmup_share=0", "batch_size=12"]
    run = train(with_settings(RECIPES["sgnet-race"](), settings), choices, tmp_path)
    assert run.progress.best.headline > 0.9


def test_a_label_without_classes_is_refused() -> None:
    with pytest.raises(SpecError, match="multiple choice needs"):
        MultipleChoice(MultipleChoiceOptions(), {"label": LabelSpec("label", "string")})


def test_the_recipe_truncates_from_the_front_as_released() -> None:
    data = RECIPES["sgnet-race"]().data
    assert isinstance(data, DataOptions)
    assert data.truncation_side == "left"
