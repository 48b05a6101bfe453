"""``constituency.v1``: trees from bracket files, learned, scored, saved and predicted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clients.benchmarks import BRACKETS
from featurestore import FeatureStore, open_store
from service.parsers import Limits, ParseInput, Parser
from service.tokenizers import LoadedTokenizer
from syntax.errors import SpecError
from syntax.examples import Example, LabelSpec
from syntax.trees.brackets import constituent_brackets
from syntax.trees.constituents import Constituent, binarised, read_trees
from syntax.trees.evalb import evaluate
from tests.trainer.rows import row_of, write_rows
from tests.trainer.runs import batches_of, finished
from tests.trainer.treebank import append_treebank
from trainer.data import open_source
from trainer.evaluation.predictions import Prediction
from trainer.evaluation.trained import ask, load_run, open_language
from trainer.loop import train
from trainer.objectives.shown_options import TREE_REG_ARRAYS
from trainer.options import ConstituencyOptions, Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.tasks.constituency import Constituency
from trainer.tasks.options import stored_trees

SUBJECTS = (
    "(NP (NN Music))",
    "(NP (DT The) (NN dog))",
    "(NP (NP (NNS Cats)) (PP (IN of) (NP (PRP us))))",
)
OBJECTS = ("", " (NP (PRP it))", " (NP (DT a) (NN house))", " (S (VP (VBG singing)))")
TREES = [
    f"( (S {subject} (VP (VBZ sees){seen}) (. .)) )" for subject in SUBJECTS for seen in OBJECTS
] + ["( (INTJ (UH Yes)) )", "( (FRAG (. .)) )"]


@pytest.fixture(scope="module")
def uri(
    tmp_path_factory: pytest.TempPathFactory, english: Parser, tokenizer: LoadedTokenizer
) -> str:
    folder = tmp_path_factory.mktemp("brackets")
    for split in ("train", "dev"):
        (folder / f"{split}.mrg").write_text("\n".join(TREES), "utf-8")
    with open_store(str(folder / "store")) as store:
        for split in ("train", "dev"):
            append_brackets(store, english, tokenizer, folder, split)
            append_treebank(store, tokenizer, split)
    return str(folder / "store")


@pytest.fixture
def store(uri: str) -> Iterator[FeatureStore]:
    with open_store(uri) as opened:
        yield opened


def append_brackets(
    store: FeatureStore, parser: Parser, tokenizer: LoadedTokenizer, folder: Path, split: str
) -> None:
    spec = BRACKETS.spec(split, "en", path=folder)
    rows = []
    for seq, item in enumerate(BRACKETS.read(folder, split, "en")):
        assert isinstance(item, Example)
        parse = parser.parse(ParseInput("pretokenized", tokens=item.segments[0].tokens), Limits())
        made = (seq, item.example_id, [parse], item.labels)
        rows.append(row_of(tokenizer, parser.identity.fingerprint, *made, tokens=True))
    write_rows(store, parser, tokenizer, spec, rows)


def test_tree_reg_learns_the_constituents_of_bracket_files(store, tmp_path) -> None:
    settings = (
        *("data.tokenizer=parsebank-wordpiece-en", "batch_size=7", "max_steps=2", "threads=1"),
        *("warmup_steps=0", "evaluate_every=2", "log_every=1", "max_length=32"),
    )
    made = with_settings(RECIPES["clm-treereg-constituents"](), settings)
    seen = 0
    for batch in batches_of(store, made, "train"):
        brackets = batch.extra(TREE_REG_ARRAYS[1])
        for row, name in enumerate(batch.arrays["example_id"]):
            (tree,) = read_trees(TREES[int(name.rpartition("-")[2]) - 1])
            expected = constituent_brackets(one[1:] for one in tree.constituents).tolist()
            own = brackets[brackets[:, 0] == row]
            assert own[:, 3:].tolist() == expected
            assert own[:, 2].tolist() == [start - 1 for start, _, _ in expected]
            seen += len(expected)
    assert seen > 12
    run = train(made, store, tmp_path / "run")
    outcomes = result_of(run)["outcomes"]
    assert outcomes["example_without_brackets"] > 0
    assert not {"sentence_without_its_root", "constituent_of_parts_of_words"} & set(outcomes)
    short = train(with_settings(made, ["data.max_length=5"]), store, tmp_path / "short")
    assert result_of(short)["outcomes"]["sentence_without_its_root"] > 0


def test_tree_reg_without_the_label_is_refused(store, tmp_path) -> None:
    setting = "objectives.tree_reg.constituents=phrases"
    made = with_settings(RECIPES["clm-treereg-constituents"](), [setting])
    with pytest.raises(SpecError, match="'phrases', and the examples have no such label"):
        next(iter(batches_of(store, made, "train")))


def recipe(*settings: str) -> Recipe:
    common = [
        *("task.name=constituency.v1", "data.dataset=brackets", "model.use_syntax=false"),
        *("batch_size=7", "epochs=2", "log_every=1", "warmup_steps=0", "max_length=32"),
        *("task.span=32", "task.label_width=16", "task.dropout=0", "model.dropout=0"),
    ]
    return with_settings(RECIPES["sample"](), [*common, *settings])


def fitted(store: FeatureStore, made: Recipe) -> Recipe:
    data = open_source(store, made, "train", "en").dataset
    return replace(made, task=made.task.fitted(data))


def test_stored_trees_are_those_of_the_file(store) -> None:
    data = open_source(store, recipe(), "dev", "en").dataset
    assert [tree for _, tree in stored_trees(data, "constituents", "pos")] == read_trees(
        "\n".join(TREES)
    )


@pytest.mark.parametrize("length", [32, 6])
def test_targets_are_the_binary_trees_of_whole_sentences(store, length) -> None:
    made = fitted(store, recipe(f"max_length={length}"))
    trees = dict(
        zip((f"dev-{n}" for n in range(1, 99)), read_trees("\n".join(TREES)), strict=False)
    )
    cut = 0
    for batch in batches_of(store, made):
        for row, name in enumerate(batch.example_ids):
            rows = batch.labels["constituency_stretches"][row].tolist()
            found = [
                (made.task.labels[label], start, end) for start, end, label in rows if start >= 0
            ]
            tree = trees[name]
            shown = int((batch.labels["token_places"][row] >= 0).sum())
            cut += shown < len(tree.words)
            whole = binarised(len(tree.words), tree.constituents)
            assert found == ([tuple(x) for x in whole] if shown == len(tree.words) else [])
    assert (cut > 0) == (length == 6)


PARTS = ("states=mix", "mixed_layers=2", "pieces=mean", "lstm_layers=1", "lstm_width=16")


def test_a_parser_is_trained_saved_and_loaded(store, tmp_path) -> None:
    settings = ("epochs=15", "learning_rate=0.01", "evaluate_every=15")
    made = recipe(*settings, *(f"task.{one}" for one in PARTS))
    run = finished(made, store, tmp_path)
    assert run.progress.losses[-1] < run.progress.losses[0]
    kept = load_run(tmp_path).on(store)
    answers = ask(kept, open_language(store, kept, "dev", "en"))
    scores = answers.scores
    assert scores.headline == scores.f1 == pytest.approx(run.progress.best.headline)
    assert scores.unlabelled_f1 >= scores.f1 > 0.9
    assert (scores.examples, scores.skipped, scores.cut_sentences) == (13, 1, 0)
    system = [
        replace(tree, constituents=tuple(Constituent(*one) for one in found.predicted))
        for tree, found in zip(
            read_trees("\n".join(TREES)), by_seq(answers.predictions), strict=True
        )
    ]
    theirs = evaluate(zip(read_trees("\n".join(TREES)), system, strict=True))
    assert (100 * scores.f1, scores.crossing) == pytest.approx((theirs.f1, theirs.crossing))
    by_name = {one.example_id: one for one in answers.predictions}
    best = by_name["dev-2"]
    assert best.right
    assert (
        best.gold
        == best.predicted
        == [
            *[["S", 0, 4], ["NP", 0, 1], ["VP", 1, 3], ["NP", 2, 3]],
        ]
    )


def by_seq(predictions: list[Prediction]) -> list[Prediction]:
    return sorted(predictions, key=lambda one: int(one.example_id.partition("-")[2]))


def test_cut_sentences_are_scored_by_what_is_shown_and_counted(store, tmp_path) -> None:
    finished(recipe("max_length=6"), store, tmp_path)
    kept = load_run(tmp_path).on(store)
    answers = ask(kept, open_language(store, kept, "dev", "en"))
    assert answers.scores.cut_sentences > 0
    assert answers.scores.examples == 13
    for one in answers.predictions:
        assert all(start < end <= 4 for _, start, end in one.predicted)


def test_it_is_learned_together_with_dependencies(store, tmp_path) -> None:
    """As a stream beside the main one: two heads on one encoder."""
    data = {**recipe().to_json()["data"], "dataset": "treebank"}
    task = {"name": "dependency.v1", "parser": {"arc": 16, "relation": 16}}
    stream = {"name": "ud", "data": data, "task": task, "share": 1.0, "joins": True}
    made = recipe(f"streams={json.dumps([stream])}", "max_steps=4", "evaluate_every=2")
    run = finished(made, store, tmp_path)
    scores = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert "las" in json.dumps(scores)
    assert "unlabelled_f1" in json.dumps(scores)
    assert all(np.isfinite(run.progress.losses))


def test_labels_of_other_kinds_are_refused() -> None:
    tags = LabelSpec("pos", "tags", ("NN",))
    wrong = {"constituents": replace(tags, name="constituents"), "pos": tags}
    with pytest.raises(SpecError, match=r"'constituents' is of kind 'tags'.*needs 'spans'"):
        Constituency(ConstituencyOptions(), wrong)


@pytest.mark.parametrize("name", ["constituency", "udprlm-constituency"])
def test_recipes_are_trained(store, tmp_path, tiny_encoder, name) -> None:
    small = {
        "constituency": (f"model.encoder={tiny_encoder}", "weights=random"),
        "udprlm-constituency": (
            *(
                "model.use_syntax=false",
                "model.layers=4",
                "model.hidden_size=16",
                "model.heads=2",
                "feed_forward=16",
            ),
            *("task.lstm_layers=1", "task.lstm_width=8", "learning_rate=0.1"),
        ),
    }
    common = ("max_steps=3", "evaluate_every=3", "batch_size=4", "task.span=8")
    run = finished(with_settings(RECIPES[name](), [*common, *small[name]]), store, tmp_path)
    assert 0 <= run.progress.best.headline <= 1
