"""Two systems on the same examples: joined by name, and refused when they are not comparable."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from syntax.errors import SpecError, UnknownNameError
from tests.trainer.command import need_no_torch, parsebank
from trainer.evaluation.compare import EVERY, compare
from trainer.evaluation.predictions import (
    Prediction,
    predictions_file,
    read_predictions,
    write_predictions,
)
from trainer.metrics.tagging import tagging_scores, tagging_shares

Answers = dict[str, list[Prediction]]
TAGS = ("O", "B-A", "I-A", "B-B")


def answer(name: str, right: bool) -> Prediction:
    predicted = "yes" if right else "no"
    return Prediction(name, "yes", predicted, right, {"accuracy": (float(right), 1.0)})


def answers(seed: int, share: float, count: int = 60) -> list[Prediction]:
    rng = random.Random(seed)
    return [answer(f"ex-{at}", rng.random() < share) for at in range(count)]


@pytest.fixture
def keep(tmp_path) -> Callable[..., Path]:
    """A folder as ``parsebank evaluate`` leaves it, with predictions of our choice."""

    def write(name: str, languages: Answers, metric: str = "accuracy", **content: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "result.json").write_text("{}", "utf-8")
        scores = {lang: {"per_class": {"no": {}, "yes": {}}} for lang in languages}
        found = {"dataset": "pairs", "metric": metric, "languages": scores, **content}
        (folder / "evaluation-dev.json").write_text(json.dumps(found), "utf-8")
        for lang, predictions in languages.items():
            write_predictions(predictions, predictions_file(folder, "dev", lang))
        return folder

    return write


def test_examples_are_joined_by_name_and_the_rest_is_counted(keep) -> None:
    one = answers(0, 0.9)
    other = answers(1, 0.5)[10:]
    random.Random(0).shuffle(other)
    # The second is as a sentence that is too long for the published rules of parsers.
    unscored = [Prediction("more", None, "yes"), Prediction("long", "yes", "yes")]
    found = compare(
        keep("a", {"en": [*one, *unscored]}), keep("b", {"en": [*other, *unscored]}), "dev"
    )
    (line,) = found.lines
    assert line.examples == 50
    assert line.difference.one == pytest.approx(sum(x.right for x in one[10:]) / 50)
    assert line.difference.other == pytest.approx(sum(x.right for x in other) / 50)
    assert found.left_out == {"en": {"only_in_one": 10, "without_label": 1, "not_scored": 1}}
    (test,) = line.mcnemar.values()
    by_name = {x.example_id: x.right for x in other}
    assert test.only_one == sum(x.right and not by_name[x.example_id] for x in one[10:])


def test_a_system_that_is_better_is_told_from_chance(keep) -> None:
    good, bad, twin = (keep(name, {"en": answers(*args)}) for name, args in SYSTEMS.items())
    (line,) = compare(good, bad, "dev").lines
    assert max(line.difference.bootstrap, line.difference.permutation) < 0.01
    assert line.mcnemar[""].p < 0.01
    assert line.difference.low > 0
    (line,) = compare(good, twin, "dev").lines
    assert min(line.difference.bootstrap, line.difference.permutation) > 0.05


SYSTEMS = {"good": (0, 0.9), "bad": (1, 0.4), "twin": (2, 0.9)}


def test_over_languages_translations_count_as_one_example(keep) -> None:
    """With the same answers in three languages there is no more evidence than in one."""
    one, other = answers(0, 0.7), answers(1, 0.55)
    a = keep("a", dict.fromkeys(("de", "en", "fr"), one))
    b = keep("b", dict.fromkeys(("de", "en", "fr"), other))
    lines = {line.lang: line for line in compare(a, b, "dev").lines}
    assert lines[EVERY].examples == 60
    assert lines[EVERY].difference.permutation == lines["en"].difference.permutation
    assert lines[EVERY].difference.low == pytest.approx(lines["en"].difference.low)
    assert lines[EVERY].mcnemar == {}


def test_languages_weigh_alike_and_those_of_one_are_named(keep) -> None:
    a = keep("a", {"de": answers(0, 0.7, 20), "en": answers(1, 0.7, 60), "ru": answers(0, 1)})
    b = keep("b", {"de": answers(2, 0.7, 20), "en": answers(3, 0.7, 60)})
    found = compare(a, b, "dev")
    lines = {line.lang: line.difference for line in found.lines}
    assert lines[EVERY].one == pytest.approx((lines["de"].one + lines["en"].one) / 2)
    assert found.languages_of_one == ["ru"]


def test_seeds_are_averaged_and_paired(keep) -> None:
    for seed in (0, 1, 2):
        keep(f"a/seed{seed}", {"en": answers(seed, 0.8)})
        keep(f"b/seed{seed}", {"en": answers(seed + 10, 0.6)})
    folder = keep("c", {"en": []}).parent
    (line,) = compare(folder / "a", folder / "b", "dev").lines
    assert list(line.seeds) == ["seed0", "seed1", "seed2"] == list(line.mcnemar)
    gaps = [one - other for one, other in line.seeds.values()]
    mean = sum(gaps) / 3
    assert line.difference.difference == pytest.approx(mean)
    assert line.deviation == pytest.approx((sum((gap - mean) ** 2 for gap in gaps) / 2) ** 0.5)


def test_entity_f1_is_that_of_the_corpus(keep) -> None:
    rng = random.Random(0)
    sides: dict[str, list[Prediction]] = {"a": [], "b": []}
    pairs: dict[str, list] = {"a": [], "b": []}
    for at in range(30):
        gold = [rng.choice(TAGS) for _ in range(6)]
        for name, noise in (("a", 0.1), ("b", 0.4)):
            said = [rng.choice(TAGS) if rng.random() < noise else tag for tag in gold]
            shares = tagging_shares(gold, said)
            sides[name].append(Prediction(f"{at}", gold, said, gold == said, shares))
            pairs[name].append((gold, said))
    a, b = (keep(name, {"en": side}, metric="f1") for name, side in sides.items())
    (line,) = compare(a, b, "dev").lines
    assert line.difference.one == pytest.approx(tagging_scores(pairs["a"], 0.0).f1)
    assert line.difference.other == pytest.approx(tagging_scores(pairs["b"], 0.0).f1)


def test_systems_that_cannot_be_compared_are_refused_by_name(keep) -> None:
    one = keep("one", {"en": answers(0, 0.8)})
    for content, message in (
        ({"dataset": "others"}, "dataset 'pairs', and the second of 'others'"),
        ({"metric": "mcc"}, "metric 'accuracy', and the second of 'mcc'"),
    ):
        other = keep(f"x{len(message)}", {"en": answers(1, 0.8)}, **content)
        with pytest.raises(SpecError, match=message):
            compare(one, other, "dev")
    renamed = [replace(x, example_id=f"other-{x.example_id}") for x in answers(1, 0.8)]
    relabelled = [replace(x, gold="no") for x in answers(1, 0.8)]
    twice = [*answers(1, 0.8), answers(1, 0.8)[0]]
    for name, languages, message in (
        ("ids", {"en": renamed}, "share 0 examples with a label"),
        ("gold", {"en": relabelled}, "'ex-0' has the label 'yes' in one run and another"),
        ("twice", {"en": twice}, "2 predictions of the example 'ex-0'"),
        ("lang", {"de": answers(1, 0.8)}, "they share no language"),
    ):
        with pytest.raises(SpecError, match=message):
            compare(one, keep(name, languages), "dev")
    with pytest.raises(SpecError, match=r"parsebank evaluate .* --split test"):
        compare(one, one, "test")
    with pytest.raises(UnknownNameError, match="accuracy, macro_f1, mcc"):
        compare(one, one, "dev", ["f2"])
    with pytest.raises(SpecError, match="seeds"):
        compare(one, keep("s/seed1", {"en": answers(1, 0.8)}).parent, "dev")


DAMAGED = {"cut": '{"dataset": "pairs", "la', "list": "[1]", "deep": "[" * 200_000, "bytes": "\xff"}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_an_evaluation_that_is_damaged_is_refused_by_its_file(content, keep) -> None:
    one = keep("one", {"en": answers(0, 0.8)})
    (one / "evaluation-dev.json").write_text(content, "latin-1")
    with pytest.raises(SpecError, match=r"evaluation-dev\.json (is not JSON|holds a list)"):
        compare(one, one, "dev")


def test_trained_runs_are_compared_from_the_command_line(store_uri, tmp_path) -> None:
    short = ["--set", "batch_size=8", "--max-steps", "4", "--seed", "1", "--seed", "2"]
    for name in ("true", "false"):
        settings = ["--set", f"use_syntax={name}", "--output", tmp_path / name]
        made = parsebank("train", "sample", "--store", store_uri, *short, *settings)
        assert made.exit_code == 0, made.output
        scored = parsebank("evaluate", tmp_path / name, "--store", store_uri, "--split", "dev")
        assert scored.exit_code == 0, scored.output
        kept = tmp_path / name / "seed1"
        assert "| transfer gap |" in (kept / "evaluation-dev.md").read_text("utf-8")
        assert len(read_predictions(predictions_file(kept, "dev", "de"))) == 48
    out = ["--output", tmp_path / "found.json"]
    result = parsebank(
        *("compare", tmp_path / "true", tmp_path / "false", "--split", "dev"),
        *("--resamples", "200", "--metric", "accuracy", "--metric", "mcc", *out),
    )
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "found.json").read_text("utf-8"))
    found = [(line["metric"], line["lang"]) for line in content["lines"]]
    assert found == [(m, lang) for m in ("accuracy", "mcc") for lang in ("de", "en", "fr", "all")]
    line = content["lines"][1]
    scores = [
        json.loads((tmp_path / "true" / f"seed{seed}" / "evaluation-dev.json").read_text("utf-8"))
        for seed in (1, 2)
    ]
    mean = sum(one["languages"]["en"]["accuracy"] for one in scores) / 2
    assert line["one"] == pytest.approx(mean)
    assert "| mcc | all |" in (tmp_path / "found.md").read_text("utf-8")
    assert "p McN" in result.stdout


@pytest.mark.slow
def test_comparing_needs_no_torch(keep) -> None:
    folder = keep("a", {"en": answers(0, 0.8)})
    assert need_no_torch(["compare", folder, folder, "--split", "dev", "--json"])
