"""Whatever a run predicts of stored examples, it predicts of the same texts from the service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients import Client
from featurestore import FeatureStore, open_store
from syntax.errors import SpecError
from tests.trainer import everything, related, tagged
from tests.trainer.command import parsebank
from trainer.api import predict_stored
from trainer.evaluation.predict import RawExample, examples_of_lines, given_labels, predict
from trainer.evaluation.trained import TrainedRun, load_run
from trainer.loop import train
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.results import write_result

PARSER = "udpipe/english-ewt"
"""As the stored trees have it."""
SHORT = ("max_steps=2", "evaluate_every=null")
GATE = ("encoder=parsebank-tiny", "weights=random", "head_size=8", "feed_forward=32", *SHORT)


@pytest.fixture(scope="module")
def store(tmp_path_factory, english, tokenizer) -> Iterator[FeatureStore]:
    folder = tmp_path_factory.mktemp("stored")
    related.write_related(folder / "ace", english)
    with open_store(str(folder / "store")) as opened:
        for split, first in (("train", 0), ("dev", 8)):
            everything.append_everything(opened, english, tokenizer, split, 4, first)
            tagged.append_tagged(opened, english, tokenizer, split)
            related.append_related(opened, tokenizer, folder / "ace", split)
        yield opened


def trained(recipe: Recipe, store: FeatureStore, folder: Path) -> TrainedRun:
    write_result(result_of(train(recipe, store, folder)), folder)
    return load_run(folder)


def stored_lines(run: TrainedRun, store: FeatureStore) -> list[str]:
    """The stored examples as one sends them."""
    given = [label.name for label in given_labels(run)]
    data = store.dataset(run.recipe.data.dataset, split="dev", lang="en")
    rows = data.columns(["example_id", "texts", *given]).to_pylist()
    fields = run.requirements.fields
    return [
        json.dumps(
            {name: row[name] for name in ("example_id", *given)}
            | {name: text.split(" ") for name, text in zip(fields, row["texts"], strict=True)}
        )
        for row in rows
    ]


def assert_same(run: TrainedRun, folder: Path, store: FeatureStore, client: Client) -> None:
    expected = predict_stored(folder, store, "dev", "en", any_parser=True)
    lines = stored_lines(run, store)
    examples = examples_of_lines(lines, run.requirements.fields, given_labels(run))
    found = predict(run, client, examples, "en", parser=PARSER, any_parser=True)
    assert [(one.example_id, one.predicted, one.probability) for one in found] == [
        (one.example_id, one.predicted, one.probability) for one in expected
    ]
    assert len(found) == len(lines) > 3


@pytest.mark.slow
@pytest.mark.parametrize("task", everything.TASKS)
def test_a_task_on_sequences(client, store, tmp_path, task) -> None:
    run = trained(everything.recipe_for(task, *SHORT), store, tmp_path)
    assert_same(run, tmp_path, store, client)


@pytest.mark.slow
def test_words_with_frozen_states(client, store, tmp_path) -> None:
    task = ("task.name=token_classification.v1", f"data.dataset={tagged.NAME}", "use_tags=false")
    run = trained(with_settings(RECIPES["gate-relation"](), [*task, *GATE]), store, tmp_path)
    assert_same(run, tmp_path, store, client)


@pytest.fixture(scope="module")
def relations(tmp_path_factory, store) -> Path:
    """The output of a run that was given mentions and tags."""
    folder = tmp_path_factory.mktemp("relations")
    settings = [f"data.dataset={related.NAME}", "use_types=true", *GATE]
    trained(with_settings(RECIPES["gate-relation"](), settings), store, folder)
    return folder


@pytest.mark.slow
def test_relations_of_given_mentions(client, store, relations, english) -> None:
    """The service's trees are others than those of the files; mentions and tags are theirs."""
    run = load_run(relations)
    given = given_labels(run)
    assert [label.name for label in given] == ["subject", "object", "ner"]
    lines = stored_lines(run, store)
    examples = examples_of_lines(lines, run.requirements.fields, given)
    found = predict(run, client, examples, "en", any_parser=True)
    assert [one.example_id for one in found] == [one.example_id for one in examples]
    names = {label.name: label.names for label in run.requirements.labels}["relation"]
    assert {one.predicted for one in found} <= set(names)


def test_the_command_reads_mentions(store, relations, tmp_path) -> None:
    lines = "".join(f"{line}\n" for line in stored_lines(load_run(relations), store)[:2])
    options = ("predict", relations, "--store", tmp_path, "--any-parser")
    found = parsebank(*options, "--file", "-", "--json", given=lines)
    assert found.exit_code == 0, found.output
    assert len(found.stdout.splitlines()) == 2
    alone = parsebank(*options, "Time flies.")
    assert alone.exit_code == 1
    assert "comes with its subject, object, ner; give examples with --file" in alone.stderr


def test_mentions_that_are_missing_or_none_are_refused_by_name(client, relations) -> None:
    run = load_run(relations)
    fields = run.requirements.fields
    whole = {"start_char": 0, "end_char": 1}
    fine = {fields[0]: ["a"], "subject": [whole], "object": [whole], "ner": ["O"]}
    assert examples_of_lines([json.dumps(fine)], fields, given_labels(run))
    for broken in ({"subject": 1}, {"object": []}, {"subject": [{"start": 0}]}, {"ner": None}):
        line = json.dumps(fine | broken)
        with pytest.raises(SpecError, match="and the spans subject, and the spans object"):
            examples_of_lines([line], fields, given_labels(run))
    nothing = RawExample("x", (("a", "b"),), {"subject": (), "object": (), "ner": ("O", "O")})
    with pytest.raises(SpecError, match="example '0' has no subject"):
        predict(run, client, [nothing], "en", any_parser=True)
