"""GATE's recipes on a small dataset of relations, from files to scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from featurestore import FeatureStore, open_store
from featurestore.maintenance.inspect import inspect_store
from syntax.errors import SpecError
from tests.trainer.recorded import launched
from tests.trainer.related import append_related, write_related
from tests.trainer.runs import batches_of, finished, recipes_of
from trainer.evaluation.inspection import inspect_example
from trainer.evaluation.trained import load_run, open_language
from trainer.evaluation.transfer import evaluate_run
from trainer.loop import train
from trainer.nn.attention import EAGER
from trainer.options import GateOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

SMALL = (
    *("data.dataset=related", "encoder=parsebank-tiny", "weights=random", "threads=1"),
    *("head_size=8", "feed_forward=32", "batch_size=16", "evaluation_batch_size=64"),
)


@pytest.fixture(scope="module")
def related(tmp_path_factory, english, tokenizer) -> Iterator[FeatureStore]:
    folder = tmp_path_factory.mktemp("related")
    with open_store(folder / "store") as store:
        append_all(store, english, tokenizer, folder / "ace")
        yield store


def append_all(store, parser, tokenizer, folder, **pairs: int) -> None:
    write_related(folder, parser, **pairs)
    for split in ("train", "dev"):
        append_related(store, tokenizer, folder, split)


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", recipes_of("relation.v1"))
def test_every_recipe_of_the_task_trains(name, related, tmp_path) -> None:
    settings = [*SMALL, "max_steps=2"]
    if RECIPES[name]().model.words == "vectors":
        for lang in ("en", "zh"):
            (tmp_path / f"{lang}.vec").write_text("the 1 0 2\nof 0 1 0\na 1 1 1\n", "utf-8")
        settings += [f"vectors={tmp_path / '{lang}.vec'}", "vector_width=3"]
    run = train(with_settings(RECIPES[name](), settings), related, tmp_path / "run")
    assert run.progress.best.scores["examples"] == len(run.dev.dataset) > 20
    assert 0 < run.progress.losses[0] < 3


@pytest.mark.parametrize(
    ("name", "losses"),
    [
        ("gate-relation", [0.75575, 0.97359, 2.41050]),
        ("gate-event", [0.75370, 1.61221, 2.61073]),
        ("gate-relation-relative", [0.76317, 1.10197, 2.85681]),
        ("gate-relation-structural", [0.76309, 1.10358, 2.83072]),
    ],
)
def test_what_is_trained_as_published_stays_as_it_is(name, losses, related, tmp_path) -> None:
    """Losses recorded with whole trees and a linear classifier."""
    settings = [*SMALL, "max_steps=3", "log_every=1"]
    run = train(with_settings(RECIPES[name](), settings), related, tmp_path)
    assert run.progress.losses == pytest.approx(losses, abs=2e-5)


def test_a_word_has_the_vector_of_its_form(related, tmp_path) -> None:
    """Multi-WE: zeros where the file has none."""
    (tmp_path / "en.vec").write_text("the 1 0 2\n", "utf-8")
    settings = (f"vectors={tmp_path / '{lang}.vec'}", "vector_width=3", *SMALL)
    recipe = with_settings(RECIPES["gate-relation-vectors"](), settings)
    found = set()
    for batch in batches_of(related, recipe):
        for row, parses in enumerate(batch.arrays["parses"]):
            states = batch.extra("word_states")[row]
            for word, form in enumerate(parses[0].form):
                assert states[word].tolist() == ([1, 0, 2] if form.lower() == "the" else [0, 0, 0])
                found.add(form.lower() == "the")
    assert found == {True, False}


def test_a_word_has_its_nearest_words_of_the_target(related, tmp_path) -> None:
    """CL_Trans_GCN: nearest first; words without a vector have none."""
    (tmp_path / "en.vec").write_text("the 1 0 0.5\na 0 1 0\n", "utf-8")
    (tmp_path / "zh.vec").write_text("一 0 8 1\n的 8 1 4\n了 -1 0 0\n", "utf-8")
    vectors = (f"vectors={tmp_path / '{lang}.vec'}", "vector_width=3", "neighbours=2")
    recipe = with_settings(RECIPES["gate-relation-vectors-translated"](), (*vectors, *SMALL))
    found = set()
    for batch in batches_of(related, recipe):
        for row, parses in enumerate(batch.arrays["parses"]):
            for word, form in enumerate(parses[0].form):
                own, *near = batch.extra("word_states")[row, word].view(3, 3).tolist()
                if form.lower() == "the":
                    assert own == [1, 0, 0.5]
                    assert near[0] == [8, 1, 4]
                elif form.lower() == "a":
                    assert own == [0, 1, 0]
                    assert near[0] == [0, 8, 1]
                else:
                    assert [own, *near] == [[0, 0, 0]] * 3
                found.add(form.lower() if form.lower() in ("the", "a") else "")
    assert found == {"the", "a", ""}
    target = with_settings(recipe, ["target=en"]).model.dataset(
        related, related.dataset("related", split="dev", lang="en")
    )
    assert target.vectors["en"]["the"].tolist() == [1, 0, 0.5] * 3, "nothing to translate"
    assert (
        target.fingerprints
        != recipe.model.dataset(
            related, related.dataset("related", split="dev", lang="en")
        ).fingerprints
    )


def test_vectors_need_a_file_and_a_store(related) -> None:
    with pytest.raises(SpecError, match=r"model.vectors names no file"):
        with_settings(RECIPES["gate-relation-vectors"](), ["vectors="]).model.check_data(
            RECIPES["gate-relation"]().data
        )
    with pytest.raises(SpecError, match="of words in a store"):
        GateOptions(words="vectors", vectors="any").dataset(
            None, related.dataset("related", split="dev")
        )


def test_the_tree_is_pruned_around_the_mentions(related) -> None:
    """The stream marks the mentions by their label columns."""
    recipe = with_settings(RECIPES["gate-relation"](), [*SMALL, "prune=0"])
    cut = 0
    for batch in batches_of(related, recipe):
        distance = batch.extra(recipe.model.distance)
        for row, size in enumerate(batch.lengths_B.tolist()):
            marked = (batch.labels["subject"][row] > 0) | (batch.labels["object"][row] > 0)
            inside = distance[row, :size, :size][marked[:size]][:, marked[:size]]
            assert int(inside.max()) < 255, "a path joins the mentions"
            left = (distance[row, :size, :size] < 255).sum(1) > 1
            cut += int((~left).sum())
    assert cut > 0, "what is not on the path is cut off"


def test_another_model_trains_on_the_task(related, tmp_path) -> None:
    """A model that reads pieces pools over pieces."""
    settings = ["task.name=relation.v1", "data.dataset=related", "max_steps=2", "batch_size=8"]
    run = train(with_settings(RECIPES["sample"](), settings), related, tmp_path)
    assert run.progress.best.scores["examples"] > 20


def test_a_run_is_evaluated_on_the_states_that_it_learned_from(related, tmp_path) -> None:
    recipe = with_settings(RECIPES["gate-relation"](), [*SMALL, "max_steps=2"])
    run = finished(recipe, related, tmp_path)
    table = evaluate_run(tmp_path, related, "dev")
    assert table.scores["en"].f1 == pytest.approx(run.progress.best.headline)
    assert "states" in table.data["en"]["fingerprints"]
    trained = load_run(tmp_path, EAGER).on(related)
    source = open_language(related, trained, "dev", "en")
    with pytest.raises(SpecError, match="reads words of a frozen encoder"):
        inspect_example(trained, related, source, "no matter which")


@pytest.mark.slow
def test_two_processes_compute_the_states_once(tmp_path, english, tokenizer) -> None:
    """The second waits for the first, and finds them."""
    with open_store(tmp_path / "store") as store:
        append_all(store, english, tokenizer, tmp_path / "ace")
        examples = sum(len(store.dataset("related", split=one)) for one in ("train", "dev"))
    settings = [part for one in (*SMALL, "max_steps=2") for part in ("--set", one)]
    places = ("--store", str(tmp_path / "store"), "--output", str(tmp_path / "run"))
    command = ("parsebank", "train", "gate-relation", *settings, *places)
    assert launched(*command, processes=2).wait() == 0
    with open_store(tmp_path / "store") as store:
        (states,) = [one for one in inspect_store(store) if one.table.startswith("states/")]
    assert states.rows == examples


@pytest.mark.slow
def test_trees_help_where_the_label_is_about_the_tree(tmp_path, english, tokenizer) -> None:
    """Whether one mention is the head of the other; by more than seeds explain, seed by seed."""
    settings = (
        *("data.dataset=related", "encoder=parsebank-tiny", "weights=random", "threads=1"),
        *("head_size=16", "feed_forward=128", "prune=-1", "deltas=[1, 1, 1, 1]", "layer=0"),
        *("use_deprel=false", "use_tags=false", "use_types=true", "word_dropout=0.5"),
        *("layer_dropout=0.3", "dropout=0.3", "optimizer=adamw", "learning_rate=0.003"),
        *("schedule=linear", "epochs=10", "batch_size=16"),
        *("evaluate_every=null", "checkpoint_every=null"),
    )
    scores = {True: [], False: []}
    with open_store(tmp_path / "store") as store:
        append_all(store, english, tokenizer, tmp_path / "ace", pairs=10)
        for seed in range(5):
            for trees in scores:
                further = (f"training.seed={seed}", f"use_syntax={str(trees).lower()}")
                recipe = with_settings(RECIPES["gate-relation"](), [*settings, *further])
                run = train(recipe, store, tmp_path / f"{seed}-{trees}")
                scores[trees].append(run.progress.best.headline)
    gains = np.subtract(scores[True], scores[False])
    assert gains.mean() > max(0.02, 3 * gains.std(ddof=1) / len(gains) ** 0.5), scores
