"""Examples without labels: not trained on, not scored, but predicted in the order of their file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from featurestore import FeatureStore, open_store
from featurestore.records import Drop
from syntax.errors import SpecError
from tests.trainer.command import parsebank
from tests.trainer.tagged import append_tagged
from trainer.evaluation.predict import FailedExample
from trainer.evaluation.predictions import Prediction
from trainer.evaluation.submission import predict_stored, submission
from trainer.evaluation.trained import load_run
from trainer.evaluation.transfer import evaluate_crossed, evaluate_run
from trainer.loop import train
from trainer.options import ExtractiveQaOptions
from trainer.report import result_of
from trainer.results import write_result


def unlabelled(rows):
    return [replace(row, labels=dict.fromkeys(row.labels)) for row in rows]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def store(uri, sample_rows, append_rows) -> Iterator[FeatureStore]:
    """Half of the training rows, and all of the test in one language, have no label."""
    rows = sample_rows["train"]
    mixed = [row if row.seq % 2 else unlabelled([row])[0] for row in rows]
    # Written in another order than that of the file.
    blind = unlabelled(sample_rows["dev"])[::-1]
    with open_store(uri) as opened:
        append_rows(opened, mixed, "train", "en")
        append_rows(opened, sample_rows["dev"], "dev", "en")
        append_rows(opened, blind, "test", "en")
        append_rows(opened, sample_rows["dev"], "test", "de")
        append_rows(opened, unlabelled(rows), "train", "fr")
        yield opened


def test_examples_without_a_label_are_chosen_by_column(store) -> None:
    data = store.dataset("sample", split="train", lang="en")
    assert len(data.where(labelled=["label"])) == len(data) // 2
    assert len(data.where(labels={"label": [None]})) == len(data) - len(data) // 2
    assert len(data.where(labelled=[])) == len(data)
    with pytest.raises(LookupError, match="unknown label 'labl'"):
        data.where(labelled=["labl"])


def test_training_leaves_out_and_counts_examples_without_label(store, small_recipe, tmp_path):
    run = train(small_recipe(), store, tmp_path / "run")
    part = result_of(run)["dataset"]["train"]
    assert part["examples"] == part["unlabelled"] == 48
    assert "unlabelled" not in result_of(run)["dataset"]["dev"]


@pytest.mark.parametrize("langs", ["en,de", "*"])
def test_a_blind_language_of_dev_is_refused_and_not_left_out_of_the_scores(
    uri, small_recipe, sample_rows, append_rows, tmp_path, langs
) -> None:
    with open_store(uri) as opened:
        for lang in ("en", "de"):
            append_rows(opened, sample_rows["train"][:8], "train", lang)
        append_rows(opened, sample_rows["dev"][:8], "dev", "en")
        append_rows(opened, unlabelled(sample_rows["dev"][:8]), "dev", "de")
        recipe = small_recipe(f"data.lang={langs}")
        with pytest.raises(SpecError, match="no example of sample dev de has the label label to b"):
            train(recipe, opened, tmp_path / "run")


def test_training_on_no_label_at_all_is_refused_by_name(store, small_recipe, tmp_path):
    recipe = small_recipe("data.lang=fr", "data.dev_split=train")
    with pytest.raises(SpecError, match="no example of sample train fr has the label label to l"):
        train(recipe, store, tmp_path / "run")


@pytest.mark.parametrize("score", [evaluate_run, evaluate_crossed])
def test_evaluation_refuses_a_blind_language_by_name(store, trained, score) -> None:
    with pytest.raises(SpecError, match="no example of sample test en has the label label to be s"):
        score(trained, store, "test")
    assert score(trained, store, "test", ["de"])


def test_a_blind_split_is_predicted_in_the_order_of_its_file(store, trained, sample_rows) -> None:
    run = load_run(trained)
    found = predict_stored(run, store, "test", "en")
    assert [one.example_id for one in found] == [row.example_id for row in sample_rows["dev"]]
    assert all(one.gold is None and one.right is None for one in found)
    gold = {one.example_id: one for one in predict_stored(run, store, "test", "de")}
    assert [one.predicted for one in found] == [gold[one.example_id].predicted for one in found]
    lines = list(submission(found, "lines"))
    assert lines == [one.predicted for one in found]
    glue = [f"{number}\t{line}" for number, line in enumerate(lines)]
    assert list(submission(found, "glue")) == ["index\tprediction", *glue]


def test_the_command_writes_a_submission(store, uri, trained) -> None:
    where = ("predict", trained, "--store", uri, "--split", "test")
    shown = parsebank(*where, "--submission", "lines")
    assert shown.exit_code == 0, shown.output
    found = [json.loads(line) for line in parsebank(*where, "--json").stdout.splitlines()]
    assert shown.stdout.splitlines() == [one["predicted"] for one in found]
    refused = parsebank(*where, "--submission", "squad", "A text.")
    assert "--split reads stored examples; leave out texts" in refused.stderr
    alone = parsebank("predict", trained, "A.", "B.", "--submission", "glue")
    assert "are about stored examples; give --split" in alone.stderr


def test_a_dropped_example_is_listed_and_spoils_a_submission(store, trained) -> None:
    data = store.dataset("sample", split="test", lang="en")
    place = ("sample", data.card.tokenizer_fingerprint, "test", "en", "job")
    store.drops.append([Drop(*place, "test-9", "", "sentence_too_long", "too long")])
    found = predict_stored(load_run(trained), store, "test", "en")
    assert found[-1] == FailedExample("test-9", "sentence_too_long", "too long")
    with pytest.raises(SpecError, match=r"1 examples .* dropped them: test-9 \(sentence_too_long"):
        list(submission(found, "lines"))


def test_an_id_with_two_predictions_spoils_a_submission() -> None:
    found = [Prediction("a", None, "yes"), Prediction("b", None, "no"), Prediction("a", None, "no")]
    with pytest.raises(SpecError, match="1 ids have several predictions, such as a:"):
        list(submission(found, "lines"))


def test_an_example_in_several_sequences_needs_another_run_and_not_another_name(
    store_uri, small_recipe, tmp_path
) -> None:
    windows = ("stride=2", "max_length=16", "segment_limits=null,6", "truncation=only_first")
    with open_store(store_uri) as opened:
        run = train(small_recipe(*windows, "max_steps=1"), opened, tmp_path)
    write_result(result_of(run), tmp_path)
    shown = parsebank(
        *("predict", tmp_path, "--store", store_uri, "--split", "dev", "--submission", "lines")
    )
    assert shown.exit_code == 1
    assert "ids have several predictions" in shown.stderr
    assert "data.stride" in shown.stderr
    assert "--name" not in shown.stderr


def test_forms_of_a_submission_take_their_kind_of_prediction() -> None:
    tags = [Prediction("a", None, ["O", "B-X"]), Prediction("b", None, ["O"])]
    assert list(submission(tags, "lines")) == ["O", "B-X", "", "O", ""]
    answers = [Prediction("q", None, "blå\n"), Prediction("r", None, "")]
    assert [json.loads(line) for line in submission(answers, "squad")] == [{"q": "blå\n", "r": ""}]
    for found, form in ((tags, "glue"), (tags, "squad"), ([Prediction("a", None, {})], "lines")):
        with pytest.raises(SpecError, match=f"the form '{form}' has no place for; take --json"):
            list(submission(found, form))


def test_tags_of_blind_tokens_are_predicted_token_by_token(
    tagger, english, tokenizer, tmp_path
) -> None:
    with open_store(tmp_path / "blind") as store:
        append_tagged(store, english, tokenizer, "test", blind=True)
        found = predict_stored(load_run(tagger[0]), store, "test", "en")
        with pytest.raises(SpecError, match="has the label tags to be scored by"):
            evaluate_run(tagger[0], store, "test")
        counts = store.dataset("tagged", split="test").columns(["token_counts"]).to_pylist()
    assert [len(one.predicted) for one in found] == [row["token_counts"][0] for row in counts]
    assert all(one.gold is None for one in found)


def test_a_null_answer_is_not_the_answer_none() -> None:
    options = ExtractiveQaOptions(no_answer=True)
    assert options.has_labels({"answers": [None, []]})
    assert not options.has_labels({"answers": [None, None]})
