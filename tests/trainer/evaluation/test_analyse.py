"""Scores by group: against counts by hand, and the figures of the papers from small runs."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestore import FeatureStore, ParsedDataset, open_store
from syntax.errors import SpecError, UnknownNameError
from syntax.matrices import tree_distance
from tests.trainer import everything, related, treebank
from tests.trainer.command import need_no_torch, parsebank
from tests.trainer.rows import keep_parses
from tests.trainer.runs import finished
from trainer.api import evaluate
from trainer.evaluation.analyse import analyse, binned, confusion
from trainer.evaluation.predictions import (
    predictions_file,
    read_predictions,
    write_predictions,
)
from trainer.metrics.dependency import ParsedWord, attachment_shares
from trainer.metrics.significance import interval
from trainer.metrics.tagging import tagging_shares
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

FEW = 200
SHORT = ("max_steps=2", "evaluate_every=null", "batch_size=8")
GATE = ("encoder=parsebank-tiny", "weights=random", "head_size=8", "feed_forward=32", *SHORT)


@pytest.fixture(scope="module")
def store(tmp_path_factory, store_uri, sample_rows, append_rows, english, tokenizer):
    """Sentence pairs in three languages, questions, a treebank, relations; with their parses."""
    folder = tmp_path_factory.mktemp("analysed")
    related.write_related(folder / "ace", english)
    with open_store(str(folder / "store")) as opened:
        append_rows(opened, sample_rows["train"], "train", "en")
        for lang in ("en", "de", "ru"):
            append_rows(opened, sample_rows["dev"], "dev", lang)
        keep_parses(opened, english, "sample", "dev")
        for split, first in (("train", 0), ("dev", 8)):
            everything.append_everything(opened, english, tokenizer, split, 12, first)
            treebank.append_treebank(opened, tokenizer, split)
            related.append_related(opened, tokenizer, folder / "ace", split)
        keep_parses(opened, english, everything.NAME, "dev", "pretokenized")
        yield opened


def scored(recipe: Recipe, store: FeatureStore, folder: Path) -> Path:
    """The folder of a run with its predictions of dev."""
    finished(recipe, store, folder)
    evaluate(folder, store, "dev")
    return folder


@pytest.fixture(scope="module")
def parsers(tmp_path_factory, store) -> tuple[Path, Path]:
    """Two parsers, of two seeds each: one run, with predictions that are made different by hand."""
    folder = tmp_path_factory.mktemp("parsers")
    run = scored(treebank.recipe("max_steps=2", "evaluate_every=2"), store, folder / "run")
    for name, share in (("a", 0.3), ("b", 0.6)):
        for seed in (1, 2):
            copy = shutil.copytree(run, folder / name / f"seed{seed}")
            spoil(copy, np.random.default_rng([seed, ord(name)]), share)
    return folder / "a", folder / "b"


def spoil(run: Path, rng: np.random.Generator, share: float) -> None:
    """Replace the predictions by gold trees in which some heads and relations are wrong."""
    path = predictions_file(run, "dev", "en")
    found = []
    for one in read_predictions(path):
        said = [
            [head if rng.random() > share else None, relation if rng.random() > share else "dep"]
            for head, relation in one.gold
        ]
        words = [ParsedWord(*pair) for pair in words_of(one.gold, said)]
        found.append(replace(one, predicted=said, shares=attachment_shares(words)))
    write_predictions(found, path)


def words_of(gold: list, said: list) -> Iterator[tuple[int, int, str, str]]:
    for (head, relation), (found, label) in zip(gold, said, strict=True):
        yield head, -2 if found is None else found, relation, label


TREES = {
    f"dev-{at}": [line.split("\t") for line in conllu.splitlines() if line.split("\t")[0].isdigit()]
    for at, conllu in enumerate(treebank.TREES)
}
"""Fields of each word, by example."""


def starts(words: list[list[str]]) -> list[int]:
    """Position of the first word of the sentence of each word."""
    found: list[int] = []
    for at, word in enumerate(words):
        found.append(at if word[0] == "1" else found[-1])
    return found


def slow_depth(words: list[list[str]], at: int) -> int:
    head = int(words[at][6])
    return 0 if head == 0 else 1 + slow_depth(words, starts(words)[at] + head - 1)


def slow_distance(words: list[list[str]], at: int) -> str | None:
    head = int(words[at][6])
    return None if head == 0 else str(int(words[at][0]) - head)


def slow_direction(words: list[list[str]], at: int) -> str | None:
    distance = slow_distance(words, at)
    return distance and ("before its head" if distance.startswith("-") else "after its head")


SLOW: dict[str, Callable[[list[list[str]], int], str | None]] = {
    "relation": lambda words, at: words[at][7].split(":")[0],
    "distance": slow_distance,
    "direction": slow_direction,
    "depth": lambda words, at: str(slow_depth(words, at)),
}


def slow_groups(run: Path, by: str, metric: str) -> dict[str, list[list[float]]]:
    """For each group, right and counted words of each example, word by word."""
    groups: dict[str, dict[str, list[float]]] = {}
    for one in read_predictions(predictions_file(run, "dev", "en")):
        words = TREES[one.example_id]
        for at, (head, relation) in enumerate(one.predicted):
            key = SLOW[by](words, at)
            if key is None or ("no_punct" in metric and words[at][3] == "PUNCT"):
                continue
            right = head == int(words[at][6])
            if metric.startswith("las"):
                right = right and relation.split(":")[0] == words[at][7].split(":")[0]
            counts = groups.setdefault(key, {}).setdefault(one.example_id, [0.0, 0.0])
            counts[0] += right
            counts[1] += 1
    return {key: list(found.values()) for key, found in groups.items()}


@pytest.mark.parametrize("metric", ["uas", "las", "las_no_punct"])
@pytest.mark.parametrize("by", SLOW)
def test_scores_of_words_are_those_counted_by_hand(parsers, store, by, metric) -> None:
    """The dissertation's figures 3.3 and 3.4, and the differences of figure 3.2."""
    a, b = parsers
    found = analyse(a, b, by, store, "dev", metric, resamples=FEW)
    assert found.unit == "words"
    for side, folder in (("one", a), ("other", b)):
        seeds = [slow_groups(folder / f"seed{seed}", by, metric) for seed in (1, 2)]
        expected = {
            key: np.mean([np.divide(*np.sum(seed[key], 0)) for seed in seeds]) for key in seeds[0]
        }
        assert {one.name: getattr(one, side).score for one in found.groups} == pytest.approx(
            expected
        )
    for group in found.groups:
        assert group.gap is not None
        assert group.gap.score == pytest.approx(group.one.score - group.other.score)
        assert group.examples == len(slow_groups(a / "seed1", by, "uas")[group.name])
        assert (group.p is None) == (group.examples == 1)
    if metric == "las_no_punct" and by == "relation":
        assert found.left_out["words of groups in which las_no_punct counts nothing"] == 2
    roots = sum(word[6] == "0" for words in TREES.values() for word in words)
    assert (
        found.left_out.get("words that are roots", 0) == (by in ("distance", "direction")) * roots
    )


def test_numbers_are_in_order_and_the_counts_add_up(parsers, store) -> None:
    found = analyse(parsers[0], None, "distance", store, "dev", "uas", resamples=FEW)
    numbers = [int(one.name) for one in found.groups]
    assert numbers == sorted(numbers)
    assert numbers[0] < 0 < numbers[-1]
    words = sum(map(len, TREES.values()))
    assert sum(one.items for one in found.groups) + sum(found.left_out.values()) == words
    binned = analyse(parsers[0], None, "distance", store, "dev", "uas", bins=2, resamples=FEW)
    assert len(binned.groups) == 2
    assert sum(one.items for one in binned.groups) == sum(one.items for one in found.groups)
    assert binned.groups[0].name.startswith(f"{numbers[0]} to ")


@given(
    st.dictionaries(st.integers(-30, 30), st.integers(1, 9), min_size=1),
    st.integers(1, 25),
    st.sampled_from(["count", "range"]),
)
def test_bins_are_runs_of_values(sizes, bins, equal) -> None:
    found = binned(sizes, bins, equal)
    assert [value for values in found for value in values] == sorted(sizes)
    assert 1 <= len(found) <= bins
    assert all(found)
    if equal == "range":
        width = (max(sizes) - min(sizes) + 1) / bins
        assert all(values[-1] - values[0] < width for values in found)
    else:
        total = sum(sizes.values())
        # Without its last value, no bin has more than its share.
        for values in found:
            assert sum(sizes[value] for value in values[:-1]) < total / bins or len(values) == 1


def test_intervals_equal_resampling_spelt_out() -> None:
    rng = np.random.default_rng(1)
    whole = rng.integers(1, 5, 40)
    shares = np.stack([rng.binomial(whole, 0.7), whole], -1).astype(float)
    low, high = interval(shares[:, None, :], resamples=4000, seed=3)
    again = np.random.default_rng(5)
    scores = []
    for _ in range(4000):
        sums = [0.0, 0.0]
        for at in again.integers(0, 40, 40):
            sums = [sums[0] + shares[at][0], sums[1] + shares[at][1]]
        scores.append(sums[0] / sums[1])
    assert (low, high) == pytest.approx(np.quantile(scores, (0.025, 0.975)), abs=0.01)
    assert interval(np.array([[[1.0, 2.0]], [[1.0, 2.0]]]), resamples=FEW) == (0.5, 0.5)


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory, store) -> tuple[Path, Path]:
    """One run, trained on English and scored on three languages, and its answers turned round."""
    folder = tmp_path_factory.mktemp("classifiers")
    run = scored(with_settings(RECIPES["sample"](), SHORT), store, folder / "one")
    other = shutil.copytree(run, folder / "other")
    for lang in ("de", "en", "ru"):
        path = predictions_file(other, "dev", lang)
        turned = []
        for one in read_predictions(path):
            right = one.predicted != "neutral" and one.gold == "neutral"
            said = one.gold if right else "entailment"
            share = {"accuracy": (float(said == one.gold), 1.0)}
            turned.append(replace(one, predicted=said, right=said == one.gold, shares=share))
        write_predictions(turned, path)
    return run, other


def accuracy(run: Path, langs: tuple[str, ...]) -> float:
    found = [one for lang in langs for one in read_predictions(predictions_file(run, "dev", lang))]
    return sum(bool(one.right) for one in found) / len(found)


def test_gains_by_family_are_those_of_their_languages(classifiers, store, tmp_path) -> None:
    """Figure 4 of Syntax-mBERT."""
    one, other = classifiers
    found = analyse(one, other, "family", store, "dev", resamples=FEW)
    families = {"IE.Germanic": ("de", "en"), "IE.Slavic": ("ru",)}
    assert [group.name for group in found.groups] == list(families)
    for group in found.groups:
        langs = families[group.name]
        assert group.one.score == pytest.approx(accuracy(one, langs))
        assert group.other.score == pytest.approx(accuracy(other, langs))
        assert (group.items, group.examples) == (48 * len(langs), 48)
    of_lang = analyse(one, None, "lang", store, "dev", "macro_f1", langs=["de", "ru"])
    written = json.loads((one / "evaluation-dev.json").read_text("utf-8"))["languages"]
    assert {group.name: group.one.score for group in of_lang.groups} == pytest.approx(
        {lang: written[lang]["macro_f1"] for lang in ("de", "ru")}
    )
    plot = tmp_path / "family.svg"
    options = ("--by", "family", "--split", "dev", "--store", store.uri, "--resamples", FEW)
    result = parsebank("analyse", one, other, *options, "--plot", plot)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("family\texamples\tA\t95%\tB\t95%\tA - B\t95%\tp\nIE.Germanic")
    drawn = " ".join(ElementTree.parse(plot).getroot().itertext())
    assert all(name in drawn for name in (*families, "sample, dev: accuracy by family", "A - B"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory, store) -> Path:
    recipe = everything.recipe_for("extractive_qa.v1", *SHORT)
    return scored(recipe, store, tmp_path_factory.mktemp("answers"))


def test_exact_match_by_length_of_one_field(answers, store) -> None:
    """Figure 4 of SG-Net, in 20 bins."""
    data = store.dataset(everything.NAME, split="dev", lang="en")
    texts = data.columns(["example_id", "texts"]).to_pylist()
    lengths = {row["example_id"]: len(row["texts"][0].split(" ")) for row in texts}
    found = analyse(
        *(answers, None, "length", store, "dev", "exact_match"),
        field="passage",
        bins=20,
        resamples=FEW,
    )
    expected: dict[int, list[float]] = {}
    for one in read_predictions(predictions_file(answers, "dev", "en")):
        expected.setdefault(lengths[one.example_id], []).append(float(bool(one.right)))
    ends = [tuple(map(int, group.name.split(" to "))) for group in found.groups]
    assert 1 < len(ends) <= 20
    for group, bounds in zip(found.groups, ends, strict=True):
        inside = [
            right
            for length, of_length in expected.items()
            if bounds[0] <= length <= bounds[-1]
            for right in of_length
        ]
        assert group.items == len(inside)
        assert group.one.score == pytest.approx(np.mean(inside))
    whole = analyse(answers, None, "length", store, "dev", resamples=FEW)
    assert min(int(group.name) for group in whole.groups) > min(lengths.values())


@pytest.fixture(scope="module")
def relations(tmp_path_factory, store) -> Path:
    settings = [f"data.dataset={related.NAME}", *GATE]
    recipe = with_settings(RECIPES["gate-relation"](), settings)
    return scored(recipe, store, tmp_path_factory.mktemp("relations"))


def test_confusions_and_labels_of_relations_are_counted(relations, store, tmp_path) -> None:
    """The dissertation's figures 4.4 to 4.7."""
    path = predictions_file(relations, "dev", "en")
    answers = read_predictions(path)
    counts = Counter((one.gold, one.predicted) for one in answers)
    found = confusion(relations, None, "dev")
    assert {
        (gold, said): count
        for gold, row in zip(found.labels, found.counts, strict=True)
        for said, count in zip(found.labels, row, strict=True)
        if count
    } == counts
    none = confusion(relations, relations, "dev")
    assert not np.any(none.counts)
    plot = tmp_path / "confusion.svg"
    options = ("--by", "confusion", "--split", "dev", "--plot", plot)
    result = parsebank("analyse", relations, *options, "--format", "markdown")
    assert result.exit_code == 0, result.output
    assert "| gold / predicted | " in result.stdout
    assert "related, dev: confusion" in plot.read_text("utf-8")
    for metric, side in (("recall", 0), ("precision", 1)):
        by_label = analyse(relations, None, "label", store, "dev", metric, resamples=FEW)
        for group in by_label.groups:
            of_label = [pair for pair in counts.elements() if pair[side] == group.name]
            right = sum(gold == said for gold, said in of_label)
            expected = right / len(of_label) if of_label else 0
            assert group.one.score == pytest.approx(expected)


def test_relations_are_grouped_by_the_distance_of_their_mentions(relations, store) -> None:
    """Gold trees are read from the files, where mentions are single words."""
    dev = store.dataset(related.NAME, split="dev", lang="en")
    spans = dev.columns(["example_id", "texts", "subject", "object"]).to_pylist()
    records = ParsedDataset(store, dev).records(np.arange(len(dev)))
    expected: dict[str, Counter[str]] = {"mention_distance": Counter(), "mention_path": Counter()}
    for row, (record,) in zip(spans, records, strict=True):
        before = [row["texts"][0][: row[name][0]["start_char"]] for name in ("subject", "object")]
        one, other = (text.count(" ") for text in before)
        expected["mention_distance"][str(abs(one - other))] += 1
        path = tree_distance(record.parse.parents())[one, other]
        expected["mention_path"][str(path)] += 1
    for by, counts in expected.items():
        found = analyse(relations, None, by, store, "dev", "accuracy", resamples=FEW)
        assert {one.name: one.items for one in found.groups} == counts
        assert found.left_out == {}


def test_entities_are_scored_by_type(store, tmp_path) -> None:
    recipe = everything.recipe_for("token_classification.v1", *SHORT)
    run = scored(recipe, store, tmp_path)
    path, rng = predictions_file(run, "dev", "en"), np.random.default_rng(0)
    answers = []
    for one in read_predictions(path):
        said = [tag if rng.random() < 0.7 else "O" for tag in one.gold]
        answers.append(replace(one, predicted=said, shares=tagging_shares(one.gold, said)))
    write_predictions(answers, path)
    found = analyse(run, None, "label", store, "dev", resamples=FEW)
    assert found.metric == "f1"
    for group in found.groups:
        hits = [0.0, 0.0]
        for one in answers:
            # Tags of other types are taken away, and the rest is scored as usual.
            sides = [[tag if tag.endswith(group.name) else "O" for tag in side]
                     for side in (one.gold, one.predicted)]  # fmt: skip
            hits = [sum(pair) for pair in zip(hits, tagging_shares(*sides)["f1"], strict=True)]
        assert group.one.score == pytest.approx(hits[0] / hits[1])
    assert {group.name for group in found.groups} == {"ACT", "THING"}
    matrix = confusion(run, None, "dev")
    assert np.sum(matrix.counts) == sum(len(one.gold) for one in answers)


def test_csv_json_and_latex_have_the_same_numbers(parsers, store, tmp_path) -> None:
    options = ("--by", "relation", "--split", "dev", "--store", store.uri, "--resamples", FEW)
    texts = {}
    for form in ("csv", "json", "latex", "markdown"):
        path = tmp_path / f"found.{form}"
        result = parsebank("analyse", *parsers, *options, "--format", form, "--output", path)
        assert result.exit_code == 0, result.output
        texts[form] = path.read_text("utf-8")
    content = json.loads(texts["json"])
    rows = [*csv.DictReader(StringIO(texts["csv"]))]
    assert len(rows) == len(content["groups"]) > 5
    lines = [line for line in texts["latex"].splitlines() if line.endswith(r"\\")][1:]
    for row, group, line in zip(rows, content["groups"], lines, strict=True):
        assert (row["relation"], int(row["words"])) == (group["name"], group["items"])
        assert int(row["resampled"]) == group["examples"]
        for column, side in (("A", "one"), ("B", "other"), ("A - B", "gap")):
            assert float(row[column]) == group[side]["score"]
        assert row["A low"] == ("" if (low := group["one"]["low"]) is None else str(low))
        cells = line.removesuffix(r" \\").split(" & ")
        assert cells[:3] == [group["name"], str(group["items"]), f"{group['one']['score']:.4f}"]
        assert f"| {group['name']} | {group['items']} |" in texts["markdown"]


def test_what_a_run_does_not_offer_is_refused_by_name(parsers, classifiers, answers, store) -> None:
    def refused(error: type[Exception], message: str, run: Path, by: str, **options: object):
        with pytest.raises(error, match=message):
            analyse(run, None, by, store, "dev", **options)

    tasks = r"grouping of predictions of sequence_classification\.v1.*: family, label, lang, length"
    refused(UnknownNameError, tasks, classifiers[0], "relation")
    refused(
        UnknownNameError,
        "depth, direction, distance, family, lang, length, relation",
        parsers[0],
        "label",
    )
    refused(UnknownNameError, "metric of words.*clas, las", parsers[0], "depth", metric="f1")
    refused(UnknownNameError, "Known: f1, precision, recall", classifiers[0], "label", metric="mcc")
    refused(UnknownNameError, "field of everything.*question", answers, "length", field="q")
    refused(UnknownNameError, "de, en, ru", classifiers[0], "lang", langs=["xx"])
    refused(SpecError, "goes with groups by length, mention_dist", parsers[0], "relation", bins=3)
    refused(SpecError, "`field=text` goes with groups by length", parsers[0], "depth", field="text")
    with pytest.raises(SpecError, match=r"extractive_qa\.v1 predicts no labels"):
        confusion(answers, None, "dev")
    with pytest.raises(SpecError, match=r"run: parsebank evaluate .* --split test"):
        analyse(answers, None, "length", store)
    with pytest.raises(SpecError, match="dataset"):
        analyse(answers, classifiers[0], "length", store, "dev")
    for options, message in (
        (("--by", "confusion", "--bins", 3), "leave --bins 3 out"),
        (("--output", "x.txt"), "choose --form"),
        (("--plot", "x.txt"), "x.txt is not a picture"),
    ):
        result = parsebank("analyse", answers, "--split", "dev", "--store", store.uri, *options)
        assert result.exit_code == 1
        assert message in " ".join(result.stderr.split())


def test_a_store_with_other_trees_is_refused(parsers, store, tokenizer, tmp_path) -> None:
    swapped = (*treebank.TREES[1:], treebank.TREES[0])
    with open_store(tmp_path / "store") as other:
        treebank.append_treebank(other, tokenizer, "train")
        treebank.append_treebank(other, tokenizer, "dev", swapped)
        with pytest.raises(SpecError, match=r"tree of the en example 'dev-\d' in the store is not"):
            analyse(parsers[0], None, "depth", other, "dev", resamples=FEW)
    with open_store(tmp_path / "fewer") as other:
        treebank.append_treebank(other, tokenizer, "train")
        treebank.append_treebank(other, tokenizer, "dev", treebank.TREES[:2])
        with pytest.raises(SpecError, match="4 of 6 examples in en are not in the store"):
            analyse(parsers[0], None, "length", other, "dev", resamples=FEW)


@pytest.mark.slow
def test_analysing_needs_no_torch(parsers, store) -> None:
    options = ["--by", "direction", "--split", "dev", "--store", store.uri, "--resamples", FEW]
    assert need_no_torch(["analyse", *parsers, *options])
