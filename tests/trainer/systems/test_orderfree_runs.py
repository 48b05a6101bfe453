"""The order-free parser from a store to its scores: input, drawn batches, restarts, other data."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from featurestore import FeatureStore, OrderPolicy, open_store
from syntax.errors import SpecError
from tests.trainer.runs import finished
from tests.trainer.treebank import DU, GO, NAME, append_treebank
from trainer.data import open_source
from trainer.evaluation.trained import ask, load_run
from trainer.loop import start, train
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.progress import Evaluation
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.restarts import restarts
from trainer.results import write_result
from trainer.systems.orderfree.options import OrderFreeOptions
from trainer.systems.orderfree.vectors import VectoredDataset, read_vectors

FRENCH = "french"


@pytest.fixture(scope="module")
def store(tmp_path_factory, tokenizer) -> Iterator[FeatureStore]:
    with open_store(str(tmp_path_factory.mktemp("orderfree") / "store")) as opened:
        append_treebank(opened, tokenizer, "train")
        append_treebank(opened, tokenizer, "dev")
        append_treebank(opened, tokenizer, "test", (DU, GO), name=FRENCH)
        yield opened


def recipe(name: str = "orderfree-selfatt-graph-delex", *settings: str) -> Recipe:
    common = [
        *(f"data.dataset={NAME}", "layers=1", "heads=2", "head_size=8", "feed_forward=16"),
        *("upos_width=16", "rnn_layers=1", "rnn_width=8", "arc=16", "task.relation=8"),
        *("batch_size=3", "max_steps=6", "evaluate_every=3", "log_every=1", "threads=1"),
        *("learning_rate=0.01", "checkpoint_every=null", "warmup_epochs=0"),
    ]
    return with_settings(RECIPES[name](), [*common, *settings])


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("orderfree-selfatt-graph-delex", ()),
        ("orderfree-selfatt-graph-delex", ("root_position=none", "task.root=learned")),
        ("orderfree-selfatt-graph-delex-as-released", ()),
        ("orderfree-rnn-graph-delex", ()),
    ],
)
def test_a_run_learns_and_its_model_comes_back(store, tmp_path, name, settings) -> None:
    longer = ("max_steps=60", "evaluate_every=60")
    run = train(recipe(name, *longer, *settings), store, tmp_path)
    losses = run.progress.losses
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
    write_result(result_of(run), tmp_path)
    loaded = load_run(tmp_path)
    again = ask(loaded, open_source(store, loaded.recipe, "dev", "en")).scores
    assert again.to_json() == run.progress.best.scores
    assert again.words == 25
    assert ",".join(loaded.recipe.task.relations) == "aux,case,det,nsubj,obl,punct,root"


def test_a_treebank_of_another_language_is_scored_with_all_of_its_words(store, tmp_path) -> None:
    """*le* has no piece, and a position, a tag and a head like other words."""
    finished(recipe(), store, tmp_path)
    loaded = load_run(tmp_path).on(store, FRENCH)
    answers = ask(loaded, open_source(store, loaded.recipe, "test", "en"))
    assert answers.scores.words == 5
    assert answers.scores.cut_words == answers.scores.pieceless_words == 0
    assert all(head is not None for head, _ in answers.predictions[0].predicted)


def test_long_sentences_are_counted_and_not_scored(store, tmp_path) -> None:
    run = train(recipe("orderfree-selfatt-graph-delex", "longest=7"), store, tmp_path)
    scores = run.progress.evaluations[-1].scores
    assert (scores["long_sentences"], scores["examples"], scores["words"]) == (2, 4, 12)


def test_dependency_reads_the_same_encoder(store, tmp_path) -> None:
    settings = ("task.name=dependency.v1", "restart_metric=null", "task.parser.arc=8")
    run = train(recipe("orderfree-selfatt-graph-delex", *settings), store, tmp_path)
    assert run.progress.evaluations[-1].scores["words"] == 25


def test_the_state_of_root_needs_root(store, tmp_path) -> None:
    with pytest.raises(SpecError, match="root=learned"):
        start(recipe("orderfree-selfatt-graph-delex", "root_position=none"), store, tmp_path)


def test_batches_are_drawn_from_buckets(store, tmp_path) -> None:
    """Words with ROOT are 4, 2, 7, 5, 5 and 8: the last is in no bucket."""
    run = start(recipe("orderfree-selfatt-graph-delex", "buckets=[4,7]"), store, tmp_path)
    assert run.epoch_steps == 5 // 3 + 1
    seen = []
    for epoch in range(20):
        run.streams["main"].begin(epoch)
        batches = run.streams["main"].take(9)
        assert len(batches) == 2
        seen += [frozenset(name[-1] for name in batch.example_ids) for batch in batches]
    assert set(seen) == {frozenset("01"), frozenset("234")}


def test_drawn_batches_go_on_where_they_were_saved(store) -> None:
    from featurestore import ParsedDataset

    data = ParsedDataset(store, store.dataset(NAME, split="train", lang="en"))
    assert data.word_counts().tolist() == [3, 1, 6, 4, 4, 7]
    order = OrderPolicy(buckets=(4, 5, 8), batch_size=2)
    whole = [batch["example_id"] for batch in data.stream(order=order, matrices=())]
    stream = data.stream(order=order, matrices=())
    next(stream)
    resumed = pickle.loads(pickle.dumps(data)).stream(order=order, matrices=())
    resumed.load_state_dict(stream.state_dict())
    assert [batch["example_id"] for batch in resumed] == whole[1:]
    assert len(whole) == 6 // 2 + 1
    other = store.dataset(NAME, split="train", lang="en").stream(order=order, matrices=())
    with pytest.raises(SpecError, match="without parses"):
        next(other)


@pytest.mark.slow
def test_a_run_that_restarted_resumes_to_the_same_losses(store, tmp_path, crash) -> None:
    """The best weights are in the checkpoint: the folder of the model may be ahead of it."""
    settings = ("max_steps=16", "evaluate_every=1", "restart_after=1", "checkpoint_every=1")
    made = recipe("orderfree-selfatt-graph-delex", *settings, "learning_rate=0.05")
    whole = train(made, store, tmp_path / "whole")
    restarted = restarts(whole.progress.evaluations, made.training)
    assert restarted

    def stop(event) -> None:
        if isinstance(event, Evaluation) and event.step == restarted[0] + 1:
            raise crash

    with pytest.raises(crash):
        train(made, store, tmp_path / "cut", observers=[stop])
    cut = train(made, store, tmp_path / "cut", resume=True)
    assert cut.progress.resumed
    assert cut.progress.losses == whole.progress.losses


def test_a_run_is_evaluated_after_every_few_passes(store, tmp_path) -> None:
    settings = ("evaluate_every=epoch", "evaluate_epochs=2", "max_steps=null", "epochs=5")
    run = train(recipe("orderfree-selfatt-graph-delex", *settings), store, tmp_path)
    assert run.epoch_steps == 3
    assert [one.step for one in run.progress.evaluations] == [6, 12, 15]


def vector_file(folder, lines) -> str:
    (folder / "wiki.en.vec").write_text("\n".join(lines) + "\n", "utf-8")
    return str(folder / "wiki.{lang}.vec")


def test_words_are_looked_up_as_they_stand_and_then_in_lower_case(tmp_path) -> None:
    pattern = vector_file(tmp_path, ["3 2", "dog 1 2", "The 3 4", "the 5 6", "0000 7 8"])
    path = tmp_path / "wiki.en.vec"
    found = read_vectors(path, ["The", "Dog", "0000", "barks"], 2)
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "The": [3, 4],
        "Dog": [1, 2],
        "0000": [7, 8],
    }
    with pytest.raises(SpecError, match="line 2, has 2 numbers for 'dog'"):
        read_vectors(path, ["dog"], 3)
    with pytest.raises(SpecError, match="no word vectors"):
        read_vectors(tmp_path / "none.vec", ["dog"], 2)
    assert pattern.endswith("{lang}.vec")


def test_a_run_reads_vectors_of_its_words(store, tmp_path) -> None:
    pattern = vector_file(tmp_path, ["dog 1 2 3", "barks 0 1 0"])
    data = VectoredDataset(store, store.dataset(NAME, split="train", lang="en"), pattern, 3)
    assert data.rare["en"] >= {"parc", "Venez"}
    assert "dog" not in data.rare["en"]
    settings = ("model.words=vectors", f"vectors={pattern}", "vector_width=3")
    run = train(recipe("orderfree-selfatt-graph-delex", *settings), store, tmp_path / "run")
    assert run.model.encoder.width == 19
    assert set(run.data.dataset.fingerprints["vectors"]) == {"en"}
    batch = run.streams["main"].cycle(1)[0]
    assert batch.extra("word_states").shape[2] == 3


def test_words_without_a_vector_take_the_english_one_as_released(
    store, tokenizer, tmp_path
) -> None:
    append_treebank(store, tokenizer, "test", (DU, GO), name="with-vectors", lang="fr")
    pattern = vector_file(tmp_path, ["parc 1 1", "Venez 2 2"])
    own = Path(pattern.replace("{lang}", "fr"))
    own.write_text("parc 7 7\nau 6 6\n", "utf-8")
    data = store.dataset("with-vectors", split="test", lang="fr")
    plain = VectoredDataset(store, data, pattern, 2)
    assert {word: of.tolist() for word, of in plain.vectors["fr"].items()} == {"parc": [7, 7]}
    released = pickle.loads(pickle.dumps(VectoredDataset(store, data, pattern, 2, "as_released")))
    assert {word: of.tolist() for word, of in released.vectors["fr"].items()} == {
        "parc": [7, 7],
        "Venez": [2, 2],
    }
    assert released.fingerprints != plain.fingerprints
    train_data = store.dataset(NAME, split="train", lang="en")
    one, other = (
        VectoredDataset(store, train_data, pattern, 2, way)
        for way in ("as_published", "as_released")
    )
    assert one.fingerprints == other.fingerprints, "English words have those of English alone"


def test_a_run_reads_states_of_a_frozen_encoder(store, tmp_path) -> None:
    settings = ("model.words=states", "encoder=parsebank-tiny", "model.weights=random")
    made = recipe("orderfree-selfatt-graph-delex", *settings)
    finished(made, store, tmp_path / "run")
    loaded = load_run(tmp_path / "run").on(store, FRENCH)
    answers = ask(loaded, open_source(store, loaded.recipe, "test", "en"))
    assert answers.scores.words == 5


def test_vectors_are_of_words_in_a_store(store) -> None:
    data = store.dataset(NAME, split="train", lang="en")
    with pytest.raises(SpecError, match="forms of words"):
        OrderFreeOptions(words="vectors", vectors="any").dataset(None, data)


def test_sentences_that_no_batch_is_drawn_from_are_announced(store) -> None:
    model = OrderFreeOptions()
    data = model.dataset(store, store.dataset(NAME, split="train", lang="en"))
    (warning,) = model.warnings(data, {"training.buckets": (4, 7)})
    assert warning.startswith("1 of 6 sentences have more than 7 words")
