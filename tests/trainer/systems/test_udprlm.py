"""UD-PrLM's runs: two phases, what starts from them, and what they count."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from clients.cli import build_app
from featurestore import FeatureStore, open_store, with_repeated, with_weighted_languages
from syntax.errors import ModelLoadError, SpecError
from tests.trainer.runs import finished, resumed
from tests.trainer.treebank import DOG, EATEN, GO, NAME, TREES, append_treebank
from trainer.api import evaluate
from trainer.data import device_batches
from trainer.loop import Run, train
from trainer.nn.piece_parser import RESERVED
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.results import FinishedRun, read_result, recipe_of

STEPS = 10
TINY_TREEBANK = Path(__file__).parents[2] / "fixtures" / "treebank-tiny"
SIZES = (
    *("layers=2", "hidden_size=16", "model.heads=2", "feed_forward=16", "max_positions=64"),
    *("model.arc=8", "model.relation=4", "usi_width=4"),
)
SHORT = (
    *("batch_size=3", f"max_steps={STEPS}", "learning_rate=0.01", "warmup_share=0", "log_every=1"),
    *("evaluate_every=5", "checkpoint_every=4", "data.max_length=32"),
)


def short(name: str, *settings: str) -> Recipe:
    recipe = with_settings(RECIPES[name](), [*SIZES, *SHORT])
    if recipe.data.dataset == "ud":
        recipe = with_settings(recipe, [f"data.dataset={NAME}"])
    if recipe.streams:
        streams = (f"streams.ud.data.dataset={NAME}", "streams.ud.data.max_length=32")
        recipe = with_settings(recipe, [*streams, "data.gold=null"])
    return with_settings(recipe, settings)


@pytest.fixture(scope="module")
def store(tmp_path_factory, sample_rows, append_rows, tokenizer) -> Iterator[FeatureStore]:
    """Sixteen texts, and a treebank."""
    with open_store(str(tmp_path_factory.mktemp("udprlm") / "store")) as opened:
        append_rows(opened, sample_rows["train"][:16], "train", "en", "text")
        append_rows(opened, sample_rows["dev"][:6], "dev", "en", "text")
        append_treebank(opened, tokenizer, "train")
        append_treebank(opened, tokenizer, "dev")
        append_treebank(opened, tokenizer, "train", (DOG, GO), name="other")
        append_treebank(opened, tokenizer, "dev", (EATEN,), name="other")
        yield opened


@pytest.fixture(scope="module")
def sizes(tmp_path_factory, tokenizer) -> Iterator[FeatureStore]:
    """Treebanks of seven, three and one sentence, and of one sentence more."""
    every = (*TREES, DOG)
    with open_store(str(tmp_path_factory.mktemp("sizes") / "store")) as opened:
        for lang, count in (("en", len(every)), ("fr", 3), ("de", 1)):
            append_treebank(opened, tokenizer, "train", every[:count], name="several", lang=lang)
        append_treebank(opened, tokenizer, "train", (EATEN,), name="few", lang="fr")
        yield opened


@pytest.fixture(scope="module")
def phase_1(store, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("phase-1")
    finished(short("udprlm-phase-1"), store, folder)
    return folder


@pytest.fixture(scope="module")
def phase_2(store, phase_1, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("phase-2")
    finished(short("udprlm-phase-2", f"start_from={phase_1}"), store, folder)
    return folder


def test_phase_1_has_trees_in_every_step(phase_1) -> None:
    result = read_result(phase_1)
    assert {name: one["steps"] for name, one in result["streams"].items()} == {
        "main": STEPS,
        "ud": STEPS,
    }
    assert result["streams"]["ud"]["train"]["examples"] == 6
    labels = result["recipe"]["model"]["labels"]
    assert labels[:2] == list(RESERVED)
    assert labels[2:] == sorted(labels[2:])
    assert result["recipe"]["streams"][0]["task"]["labels"] == labels
    scores = result["scores"]["streams"]["ud"]
    assert 0 <= scores["las_subtypes"] <= scores["uas"] <= 1
    assert scores["pieceless_words"] == 1
    assert "reserved_words" in scores


def test_sentences_of_the_treebank_are_masked_text_too(store, tmp_path) -> None:
    recipe = short("udprlm-phase-1", "data.dataset=other", f"data.gold={NAME}", "max_steps=1")
    data = Run(recipe, store, tmp_path, ()).data.dataset
    parts = [store.dataset(name, split="train") for name in ("other", NAME)]
    names = [part.columns(["example_id"])["example_id"].to_pylist() for part in parts]
    assert data.columns(["example_id"])["example_id"].to_pylist() == [*names[0], *names[1]]


@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("gold_every", [None, 4])
def test_languages_are_drawn_by_a_power_of_their_shares(sizes, exponent, gold_every) -> None:
    """Numbers by p_i = q_i^a / sum_j q_j^a, with the largest language as it is."""
    data = sizes.dataset("several", split="train", lang="*")
    if gold_every:
        data = with_repeated(data, sizes.dataset("few", split="train", lang="*"), gold_every)
    before = data.langs
    found = with_weighted_languages(data, exponent)
    powers = {lang: (count / len(data)) ** exponent for lang, count in before.items()}
    largest = max(before, key=before.__getitem__)
    for lang, power in powers.items():
        wanted = before[largest] * power / powers[largest]
        assert abs(found.langs[lang] - wanted) <= 0.5
    names = found.open_reader(False).read(np.arange(len(found))).example_ids
    of_rows = [*zip(found.rows.part.tolist(), map(bytes, found.rows.keys), strict=True)]
    assert len(set(zip(of_rows, names, strict=True))) == len(found), "repeated, drawn anew"
    times = Counter(of_rows)
    assert len(times) == 11 + bool(gold_every), "none is left out"
    for part in set(found.rows.part.tolist()) if gold_every is None else ():
        own = [count for (of, _), count in times.items() if of == part]
        assert max(own) - min(own) <= 1
    if exponent == 1:
        assert found.rows.keys.tolist() == data.rows.keys.tolist()


def test_an_exponent_above_one_is_refused() -> None:
    with pytest.raises(SpecError, match=r"data.lang_exponent is 1.5; it must be at least 0"):
        short("udprlm-phase-1", "lang_exponent=1.5")


def test_phase_2_starts_from_phase_1(store, phase_1, tmp_path) -> None:
    run = Run(short("udprlm-phase-2", f"start_from={phase_1}"), store, tmp_path, ())
    ours = run.accelerator.unwrap_model(run.model)
    theirs = type(ours).from_pretrained(phase_1 / "model").state_dict()
    own = ours.state_dict()
    assert all(torch.equal(own[name], weight) for name, weight in theirs.items())
    fresh = {name.split(".")[1] for name in own.keys() - theirs.keys()}
    assert fresh == {"usi", "layer"}
    assert any(name.startswith("head.decoder") for name in theirs)


def test_phase_2_draws_its_steps_of_trees(phase_2) -> None:
    steps = {name: one["steps"] for name, one in read_result(phase_2)["streams"].items()}
    assert steps["main"] == STEPS
    assert STEPS * 0.6 <= steps["ud"] < STEPS


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_losses(store, phase_1, tmp_path) -> None:
    recipe = short("udprlm-phase-2", f"start_from={phase_1}")
    whole = train(recipe, store, tmp_path / "whole")
    again = resumed(recipe, store, tmp_path / "cut", 7)
    assert again.progress.losses == whole.progress.losses
    assert again.progress.fed == whole.progress.fed


def test_masked_text_trains_the_parser_only_with_usi(store, phase_1, tmp_path) -> None:
    moved = {}
    for usi in (True, False):
        settings = (f"start_from={phase_1}", f"usi={usi}".lower(), "streams.ud.share=0")
        run = Run(short("udprlm-phase-2", *settings), store, tmp_path, ())
        model = run.accelerator.unwrap_model(run.model)
        before = model.encoder.parser.labels_CIJ.detach().clone()
        for batches in run.epoch():
            run.step(batches)
            break
        moved[usi] = not torch.equal(before, model.encoder.parser.labels_CIJ)
    assert moved == {True: True, False: False}


def test_a_class_is_read_from_the_first_state_behind_the_structure(
    store, phase_2, tmp_path
) -> None:
    recipe = short("udprlm-xnli", "data.dataset=text", f"start_from={phase_2}")
    run = finished(recipe, store, tmp_path / "run")
    model = run.accelerator.unwrap_model(run.model)
    assert model.encoder.usi is not None
    assert run.recipe.model.labels == recipe_of(phase_2).model.labels
    stream = run.dev.evaluation_stream(run.recipe)
    batch = next(device_batches(stream, run.recipe, run.task, torch.device("cpu")))
    model.eval()
    states = model.encoder(batch).last_hidden_state
    torch.testing.assert_close(model(batch).logits["label"], model.head.classifier(states))
    scored = evaluate(tmp_path / "run", store, "dev")
    assert scored.scores["en"].examples == 6


def test_the_baseline_takes_the_encoder_alone(store, phase_2, tmp_path) -> None:
    settings = ("data.dataset=text", f"start_from={phase_2}", "use_syntax=false", "max_steps=1")
    run = train(short("udprlm-xnli", *settings), store, tmp_path)
    model = run.accelerator.unwrap_model(run.model)
    assert model.encoder.parser is None
    assert run.recipe.model.labels == ()


def test_a_fresh_parser_reads_frozen_states(store, phase_2, tmp_path) -> None:
    """In mixed precision, too: it reads characters and words with LSTMs."""
    settings = (
        "precision=bf16",
        *(f"start_from={phase_2}", "task.parser.mixed_layers=3", "task.parser.context_width=8"),
        *("task.parser.arc=8", "task.parser.relation=8"),
    )
    run = train(short("udprlm-parser", *settings), store, tmp_path)
    model = run.accelerator.unwrap_model(run.model)
    before = type(model).from_pretrained(phase_2 / "model").encoder.state_dict()
    after = model.encoder.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    assert len(model.head.parser.mix.weights_K) == 3


def test_too_many_layers_to_mix_are_refused(store, phase_2, tmp_path) -> None:
    with pytest.raises(SpecError, match=r"mixed_layers is 5; .* at most 4"):
        Run(short("udprlm-parser", f"start_from={phase_2}"), store, tmp_path, ())


def test_a_parsed_treebank_can_be_scored_directly(store, phase_2, tmp_path) -> None:
    settings = (f"start_from={phase_2}", "learning_rate=0", "max_steps=1")
    run = finished(short("udprlm-direct", *settings), store, tmp_path / "run")
    expected = read_result(phase_2)["scores"]["streams"]["ud"]
    found = run.progress.best.scores
    names = ("uas", "las_subtypes", "reserved_words", "repaired_sentences")
    assert [found[name] for name in names] == [expected[name] for name in names]
    scored = evaluate(FinishedRun.read(tmp_path / "run"), store, "dev").scores["en"]
    assert scored.headline == run.progress.best.headline


def test_relations_that_the_run_does_not_know_are_refused(store, phase_1, tmp_path) -> None:
    direct = short("udprlm-direct", "data.dataset=other")
    folder = tmp_path / "few"
    finished(direct, store, folder)
    with pytest.raises(SpecError, match=r"nsubj:pass.*does not know"):
        Run(short("udprlm-direct", f"start_from={folder}"), store, tmp_path, ())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("start_from=", "labels=[]"), "no stream of the recipe learns trees"),
        (("model.arc=9",), "trained with model.arc=8"),
        (("usi_width=5",), "trained with model.usi_width=4"),
        (("neighbours=corrected",), "trained with model.neighbours=as_published"),
        (("policy=broadcast",), "reads trees of pieces"),
    ],
)
def test_what_does_not_fit_a_run_is_refused(store, phase_2, tmp_path, settings, message) -> None:
    given = [f"start_from={phase_2}", *settings]
    if settings[0] == "start_from=":
        given = []
    with pytest.raises(SpecError, match=message):
        Run(short("udprlm-xnli", "data.dataset=text", *given), store, tmp_path, ())


def test_a_run_that_is_not_there_is_refused(store, tmp_path) -> None:
    recipe = short("udprlm-xnli", "data.dataset=text", f"start_from={tmp_path / 'none'}")
    with pytest.raises(ModelLoadError, match="cannot load the model of the run"):
        Run(recipe, store, tmp_path, ())


def test_sentences_that_are_too_long_are_counted(store, tmp_path) -> None:
    recipe = short("udprlm-direct", "max_steps=2", "data.max_length=6", "batch_size=6")
    outcomes = result_of(train(recipe, store, tmp_path))["outcomes"]
    assert outcomes["sentence_too_long"] >= 2


@pytest.mark.slow
def test_both_phases_run_by_the_command_line(tmp_path) -> None:
    """From CoNLL-U and a text file to a parser, as docs/systems/udprlm.md has it."""
    lines = [
        line.removeprefix("# text = ")
        for file in sorted(TINY_TREEBANK.glob("*-train.conllu"))
        for line in file.read_text("utf-8").splitlines()
        if line.startswith("# text = ")
    ]
    for split in ("train", "dev"):
        (tmp_path / "corpus" / split).mkdir(parents=True)
        text = "\n".join(lines) + "\n"
        (tmp_path / "corpus" / split / "a.txt").write_text(text, "utf-8")
    (tmp_path / "treebank").mkdir()
    for file in TINY_TREEBANK.glob("*.conllu"):
        shutil.copy(file, tmp_path / "treebank" / file.name.replace("tiny", "en_tiny"))
    here = f"--store {tmp_path}/store"
    flags = [f"--set {one}" for one in (*SIZES, *SHORT, "streams.ud.data.max_length=64")]
    small = " ".join(flags)
    commands = [
        f"backfill text --path {tmp_path}/corpus --split train,dev --lang en --name text {here}",
        f"backfill ud --path {tmp_path}/treebank --split train,dev --lang en --mode gold --name ud "
        f"{here}",
        f"train udprlm-phase-1 {small} {here} --output {tmp_path}/one",
        f"train udprlm-phase-2 {small} --set start_from={tmp_path}/one {here} "
        f"--output {tmp_path}/two",
        f"train udprlm-direct --set data.max_length=64 --set start_from={tmp_path}/two "
        f"--set learning_rate=0 --max-steps 1 --set model.arc=8 --set model.relation=4 {here} "
        f"--output {tmp_path}/direct",
        f"evaluate {tmp_path}/direct --split dev {here}",
    ]
    for command in commands:
        found = CliRunner().invoke(build_app(), command.split())
        assert found.exit_code == 0, (command, found.output, found.exception)
    result = read_result(tmp_path / "two")
    assert result["streams"]["main"]["steps"] == STEPS > result["streams"]["ud"]["steps"] > 0
