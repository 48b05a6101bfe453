"""Predictions for texts: what the service answers is what the store would have held."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from clients.benchmarks import SAMPLE
from featurestore import open_store
from syntax.batches.segments import COLUMNS
from syntax.errors import SpecError
from syntax.examples import Example
from tests.trainer.command import parsebank
from trainer.evaluation.predict import (
    FailedExample,
    RawExample,
    examples_of_lines,
    examples_of_texts,
    predict,
    segment_of,
)
from trainer.evaluation.predictions import Prediction
from trainer.evaluation.trained import TrainedRun, load_run
from trainer.evaluation.transfer import evaluate_run

FIELDS = ("premise", "hypothesis")


@pytest.fixture
def run(trained) -> TrainedRun:
    return load_run(trained)


def dev_pairs(count: int) -> list[RawExample]:
    items = (item for item in SAMPLE.read(None, "dev", "en") if isinstance(item, Example))
    pairs = [
        RawExample(item.example_id, tuple(part.text for part in item.segments))
        for item, _ in zip(items, range(count), strict=False)
    ]
    assert len(pairs) == count
    return pairs


def test_segments_are_those_of_the_store(client, sample_rows) -> None:
    rows = sample_rows["dev"][:12]
    options = {"max_length": None, "joint_root": False, "separator_edge": "none", "matrices": []}
    options["parser"] = "udpipe/english-ewt"  # of the rows
    found = client.features([row.texts for row in rows], **options)
    for row, answer in zip(rows, found.assembled(), strict=True):
        for number, stored in enumerate(row.segments):
            ours = segment_of(answer.arrays, number)
            for name in (*COLUMNS, "offsets"):
                assert np.array_equal(getattr(ours, name), getattr(stored, name)), name
                assert getattr(ours, name).dtype == getattr(stored, name).dtype, name


def test_texts_are_predicted_as_the_same_stored_examples(client, run, trained, store) -> None:
    stored = evaluate_run(trained, store, "dev", ["en"]).predictions["en"]
    by_name = {one.example_id: one for one in stored}
    pairs = dev_pairs(len(stored))
    found = predict(run, client, pairs, "en")
    assert [one.example_id for one in found] == [one.example_id for one in pairs]
    for one in found:
        assert isinstance(one, Prediction)
        twin = by_name[one.example_id]
        assert one.predicted == twin.predicted
        assert one.probability == twin.probability
        assert (one.gold, one.right, one.shares) == (None, None, {})


def test_given_tokens_are_tagged_as_the_same_stored_ones(client, tagger) -> None:
    folder, uri = tagger
    with open_store(uri) as store:
        expected = evaluate_run(folder, store, "dev").predictions["en"]
        data = store.dataset("tagged", split="dev", lang="en")
        rows = data.columns(["example_id", "texts", "token_offsets"]).to_pylist()
    examples = [RawExample(row["example_id"], (tuple(row["texts"][0].split(" ")),)) for row in rows]
    found = predict(load_run(folder), client, examples, "en")
    tags = {one.example_id: (one.predicted, one.probability) for one in expected}
    assert {one.example_id: (one.predicted, one.probability) for one in found} == tags


def test_the_words_of_running_text_are_tagged(client, tagger) -> None:
    text = "Don't panic, said the engineers."
    (found,) = predict(load_run(tagger[0]), client, [RawExample("0", (text,))], "en")
    words = client.parse(text, lang="en").parsed()[0].sentences[0].words
    assert len(found.predicted) == len(words)


def test_an_example_that_cannot_be_parsed_fails_alone(client, run) -> None:
    examples = [RawExample("a", ("It works.", "")), RawExample("b", ("It works.", "It does."))]
    failed, fine = predict(run, client, examples, "en")
    assert isinstance(failed, FailedExample)
    assert (failed.example_id, failed.error_type) == ("a", "empty_text")
    assert fine.example_id == "b"
    assert predict(run, client, examples[:1], "en")[0].error_type == "empty_text"


def test_another_tokenizer_or_parser_is_refused_by_name(client, run) -> None:
    pair = [RawExample("0", ("Time flies.", "It does."))]
    other = replace(run, requirements=replace(run.requirements, tokenizer="b" * 32))
    with pytest.raises(SpecError, match=r"tokenizer parsebank-wordpiece-en \(bbbbbbbbbbbb\)"):
        predict(other, client, pair, "en")
    needs = replace(
        run.requirements,
        parsers={"en": ("c" * 32,)},
        parser_names={"c" * 32: "udpipe/english-ewt"},
    )
    other = replace(run, requirements=needs)
    with pytest.raises(SpecError, match=r"english-ewt \(cccccccccccc\), and these are of udpipe"):
        predict(other, client, pair, "en")
    assert predict(other, client, pair, "en", any_parser=True)[0].predicted
    gold = replace(run, requirements=replace(needs, mode="gold", parser_names={"c" * 32: "gold"}))
    with pytest.raises(SpecError, match=r"trees of gold \(c.*`any_parser=True`"):
        predict(gold, client, pair, "en")


def test_texts_come_as_many_as_an_example_has() -> None:
    found = examples_of_texts(["a", "b", "c", "d"], FIELDS)
    assert [(one.example_id, one.texts) for one in found] == [
        ("0", ("a", "b")),
        ("1", ("c", "d")),
    ]
    for texts in ([], ["a"], ["a", "b", "c"]):
        with pytest.raises(SpecError, match="an example has 2: premise, hypothesis"):
            examples_of_texts(texts, FIELDS)


def test_lines_name_their_texts() -> None:
    lines = ['{"hypothesis": ["b", "c"], "premise": "a", "example_id": 7}', "", '{"x": 1}']
    assert examples_of_lines(lines[:2], FIELDS) == [RawExample("7", ("a", ("b", "c")))]
    nested = "[" * 200_000
    for bad in (*lines[2:], "{", '{"premise": "a", "hypothesis": []}', "[1]", nested):
        with pytest.raises(SpecError, match="line 2 is not an example"):
            examples_of_lines([lines[0], bad], FIELDS)
    with pytest.raises(SpecError, match=r"line 1 is not an example \(it has no 'premise'\)"):
        examples_of_lines(lines[2:], FIELDS)


@pytest.mark.slow
def test_the_command_reads_texts_and_lines(trained, tmp_path) -> None:
    where = ("--store", tmp_path)
    table = parsebank("predict", trained, "Time flies.", "Time does fly.", *where)
    assert table.exit_code == 0, table.output
    assert any(name in table.stdout for name in ("entailment", "neutral", "contradiction"))
    assert "%" in table.stdout
    pair = {"premise": "Time flies.", "hypothesis": "Time does fly.", "example_id": "x"}
    bad = {**pair, "hypothesis": " ", "example_id": "y"}
    lines = f"{json.dumps(pair)}\n{json.dumps(bad)}\n"
    found = parsebank("predict", trained, "--file", "-", "--json", *where, given=lines)
    assert found.exit_code == 1
    first, second = map(json.loads, found.stdout.splitlines())
    assert first["example_id"] == "x"
    assert first["predicted"] in table.stdout
    assert second["example_id"] == "y"
    assert second["error"]["error_type"] == "empty_text"
    shown = parsebank("predict", trained, "--file", "-", *where, given=lines)
    assert re.search(r"^y\tempty_text: ", shown.stdout, re.MULTILINE)
    wrong = parsebank("predict", trained, *where)
    assert "give texts or --file" in wrong.stderr
