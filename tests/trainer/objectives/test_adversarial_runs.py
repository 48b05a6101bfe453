"""Adversarial runs: update counts, delay, soft labels, clamping, exact resumption, refusals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from featurestore import FeatureStore, ParsedDataset, open_store
from syntax.errors import SpecError, UnknownDatasetError
from tests.trainer import treebank
from tests.trainer.recorded import examples_of_steps, outcome
from tests.trainer.runs import reported, resumed
from tests.trainer.training.test_resume import finish
from tests.trainer.treebank import DOG, DU, EATEN, GO, TREES, append_treebank
from trainer.evaluation.language_test import (
    RELEASED,
    LanguageTestOptions,
    Words,
    language_test,
    right_words,
    trained_classifier,
)
from trainer.loop import Run, train
from trainer.options import AdversaryOptions, Recipe, StreamOptions
from trainer.options.settings import recipe_from_json, with_settings
from trainer.recipes import RECIPES
from trainer.recipes.adversarial import adversarial
from trainer.report import result_of
from trainer.results import is_result_of, read_json, recipe_of, write_result
from trainer.streams import feeding

SOFT = {"gan_loss": "as_released"}


@pytest.fixture(scope="module")
def store(tmp_path_factory, tokenizer) -> Iterator[FeatureStore]:
    with open_store(str(tmp_path_factory.mktemp("languages") / "store")) as opened:
        append_treebank(opened, tokenizer, "train", TREES * 2)
        append_treebank(opened, tokenizer, "dev")
        append_treebank(opened, tokenizer, "train", (DU, EATEN, DOG), lang="fr")
        append_treebank(opened, tokenizer, "dev", (DU, EATEN, DOG), lang="fr")
        append_treebank(opened, tokenizer, "train", (GO,), lang="de")
        yield opened


def made(*settings: str, langs: tuple[str, ...] = ("fr",), n_critic: int = 5, **options) -> Recipe:
    """A short adversarial run of the parser on a tiny encoder."""
    plain = replace(treebank.recipe("checkpoint_every=null"), objectives=())
    found = adversarial(plain, langs, AdversaryOptions(**options), n_critic)
    return with_settings(found, settings)


def model_of(run: Run) -> torch.nn.Module:
    return run.accelerator.unwrap_model(run.model)


def updates(run: Run) -> list[int]:
    """How often each optimizer has changed its weights."""
    return [
        max(int(state["step"]) for state in part.optimizer.state.values())
        for part in run.optimizers
    ]


@pytest.mark.parametrize(("n_critic", "expected"), [(5, [3, 11]), (-5, [11, 3]), (1, [11, 11])])
def test_n_critic_says_how_often_each_side_learns(store, tmp_path, n_critic, expected) -> None:
    run = train(made("max_steps=11", n_critic=n_critic), store, tmp_path)
    assert updates(run) == expected


def test_encoder_and_parser_stand_still_while_the_discriminator_learns(store, tmp_path) -> None:
    run, seen = Run(made("max_steps=7"), store, tmp_path, ()), []
    while not run.finished:
        for batches in run.epoch():
            run.step(batches)
            seen.append({name: one.clone() for name, one in model_of(run).state_dict().items()})
    assert len(seen) == 7
    for step in range(1, 7):
        before, now = seen[step - 1 : step + 1]
        changed = {name.partition(".")[0] for name in now if not now[name].equal(before[name])}
        rest = {"encoder", "head"} if step == 5 else set()
        assert changed == {"objectives", *rest}, step


@pytest.mark.parametrize("method", ["gan", "reversal", "wgan"])
def test_a_run_reports_the_discriminators_loss_of_each_stream(store, tmp_path, method) -> None:
    recipe = made("max_steps=1", method=method, level="sentence")
    run, (report,) = reported(recipe, store, tmp_path)
    losses = report.losses
    assert losses["auxiliary/loss"] == losses["auxiliary/adversary.v1"]
    assert losses["loss"] == pytest.approx(
        losses["task"] + losses["adversary.v1"] + losses["auxiliary/loss"], rel=1e-5
    )
    outputs = 1 if method in ("gan", "wgan") else 2
    (objective,) = model_of(run).objectives
    assert objective.discriminator.layers[-1].out_features == outputs


@pytest.mark.slow
def test_soft_labels_are_drawn_once_and_recorded(store, tmp_path) -> None:
    run = train(made(**SOFT), store, tmp_path)
    write_result(result_of(run), tmp_path)
    recipe = recipe_of(tmp_path)
    (main,), (other,) = recipe.objectives, recipe.streams[0].objectives
    assert main.soft_labels == other.soft_labels == model_of(run).objectives[0].options.soft_labels
    assert 0.7 <= main.soft_labels[0] < 1
    assert 0 <= main.soft_labels[1] < 0.3
    assert recipe == recipe_from_json(json.loads(json.dumps(recipe.to_json())))
    assert is_result_of(tmp_path, made(**SOFT)), "seeds are not trained twice"
    another = train(made("seed=1", **SOFT), store, tmp_path / "another")
    assert another.recipe.objectives[0].soft_labels != main.soft_labels
    assert train(recipe, store, tmp_path / "again").progress.losses == run.progress.losses
    assert train(made(), store, tmp_path / "hard").recipe.objectives[0].soft_labels == ()


def test_the_critic_of_a_wgan_is_clamped_with_the_generators_step(store, tmp_path) -> None:
    recipe = made("max_steps=1", "optimizers.discriminator.learning_rate=0.1", method="wgan")
    assert recipe.optimizers[1].optimizer == "rmsprop"
    for steps, bounded in ((1, True), (2, False), (6, True)):
        run = train(with_settings(recipe, [f"max_steps={steps}"]), store, tmp_path / str(steps))
        largest = max(one.abs().max().item() for one in run.optimizers[1].parameters)
        assert (largest <= 0.01) == bounded, steps
        assert max(one.abs().max().item() for one in run.optimizers[0].parameters) > 0.01
    assert isinstance(run.optimizers[1].optimizer.optimizer, torch.optim.RMSprop)


DELAY = ("delay=2", "delay_batch_size=6", "epochs=4", "max_steps=null", "schedule=constant")


@pytest.mark.parametrize(("passes", "steps"), [(0, 0), (1, 2), (2, 4), (3, 8)])
def test_a_warm_up_in_passes_begins_with_the_delay(store, tmp_path, passes, steps) -> None:
    """12 sentences: 2 passes in batches of 6, then 2 in batches of 3."""
    run = Run(made(*DELAY, f"warmup_epochs={passes}"), store, tmp_path, ())
    assert run.warmup_steps == steps


@pytest.mark.slow
def test_the_delay_is_plain_parsing_in_larger_batches(store, tmp_path) -> None:
    run, seen = reported(made(*DELAY, n_critic=2), store, tmp_path)
    # 12 sentences: 2 passes in batches of 6, then 2 in batches of 3.
    assert run.total_steps == len(run.progress.losses) == 2 + 2 + 4 + 4
    assert run.epoch_steps == 4
    assert ["adversary.v1" in one.losses for one in seen] == [False] * 4 + [True] * 8
    assert ["auxiliary/loss" in one.losses for one in seen] == [False] * 4 + [True] * 8
    assert [one.examples for one in seen[:6]] == [6, 12, 18, 24, 30, 36]
    assert updates(run) == [4 + 4, 8], "in the delay the parser takes every step"
    other = train(made(*DELAY, n_critic=2, strength=50.0), store, tmp_path / "other")
    assert other.progress.losses[:4] == run.progress.losses[:4]
    assert other.progress.losses[-1] != run.progress.losses[-1]


@pytest.mark.slow_cases
@pytest.mark.parametrize("stop", [9, 3])
def test_an_interrupted_run_resumes_to_the_same_losses(store, tmp_path, stop) -> None:
    settings = (*DELAY, "checkpoint_every=2", "accumulation=2", "epochs=8", "delay=3")
    recipe = made(*settings, langs=("fr", "de"), n_critic=2, **SOFT)
    expected = train(recipe, store, tmp_path / "whole")
    cut = resumed(recipe, store, tmp_path / "cut", stop)
    assert cut.progress.losses == expected.progress.losses
    assert cut.recipe == expected.recipe
    ours, theirs = (model_of(run).state_dict() for run in (cut, expected))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["wgan", "reversal"])
def test_two_processes_have_the_losses_of_one_with_as_large_a_batch(
    tmp_path, tokenizer, without_dropout, method
) -> None:
    """A step has four sentences of each language; both sides learn in steps 1 and 3."""
    uri = str(tmp_path / "store")
    with open_store(uri) as opened:
        append_treebank(opened, tokenizer, "train", TREES * 2)
        append_treebank(opened, tokenizer, "dev")
        append_treebank(opened, tokenizer, "train", (DU, EATEN, DOG, GO), lang="fr")
    settings = ("max_steps=4", "batch_size=2", "threads=1", "task.parser.dropout=0")
    recipe = made(*settings, *without_dropout[:2], n_critic=2, method=method, dropout=0)
    one, two = tmp_path / "one", tmp_path / "two"
    finish(uri, one, with_settings(recipe, ["accumulation=2"]), 1)
    finish(uri, two, recipe, 1, processes=2)
    assert {step: sorted(names) for step, names in examples_of_steps(one).items()} == {
        step: sorted(names) for step, names in examples_of_steps(two).items()
    }
    alone, both = outcome(one), outcome(two)
    assert len(both["losses"]) == 4
    assert both["losses"] == pytest.approx(alone["losses"], rel=1e-5)
    assert both["scores"][-1]["loss"] == pytest.approx(alone["scores"][-1]["loss"], rel=1e-5)
    weights = [(two / f"weights-{rank}").read_text() for rank in (0, 1)]
    assert weights[0] == weights[1]


def test_languages_join_in_turn_as_often_as_they_have_sentences(store, tmp_path) -> None:
    run = train(made("max_steps=12", langs=("fr", "de")), store, tmp_path)
    assert [one.share for one in run.recipe.streams] == [0.75, 0.25]
    fed = [feeding(run.recipe, step) for step in range(400)]
    assert {len(names) for names in fed} == {2}
    counts = Counter(names[1] for names in fed)
    assert abs(counts["de"] - 100) <= 4
    assert feeding(run.recipe, 0, delayed=True) == ("main",)
    further = result_of(run)["streams"]
    assert set(further) == {"main", "fr", "de"}
    assert further["de"]["passes"] > 1, "a small treebank is read again"
    assert further["de"]["train"]["examples"] == 1


def test_a_setting_of_the_objective_holds_for_every_stream() -> None:
    recipe = made("objectives.adversary.strength=0.5", "objectives.adversary.weight=2")
    assert recipe.objectives[0].strength == 0.5
    assert [one.strength for one in recipe.streams[0].objectives] == [0.5]
    assert [one.weight for one in recipe.streams[0].objectives] == [1.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("streams=[]",), "tells languages apart, and the recipe has one alone"),
        (("objectives=[]",), "tells languages apart, and the recipe has one alone"),
        (
            ("streams.auxiliary.data.lang=en",),
            r"reads what the main one reads, treebank/train/en; set streams\.auxiliary\.data\.lang",
        ),
        (("streams.auxiliary.joins=false",), r"set streams\.auxiliary\.joins=true"),
    ],
)
def test_what_has_no_two_languages_is_refused(store, tmp_path, settings, message) -> None:
    with pytest.raises(SpecError, match=message):
        train(made(*settings), store, tmp_path)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("objectives.adversary.soft_labels=0.5", "give two numbers"),
        ("objectives.adversary.soft_labels=0.5,2", "must be at least 0 and at most 1"),
        ("optimizers.discriminator.clamp=0", "clamp is 0.0; it must be above 0"),
    ],
)
def test_values_that_make_no_run_are_refused(setting, message) -> None:
    with pytest.raises(SpecError, match=message):
        made(setting)


@pytest.mark.parametrize("name", [name for name in RECIPES if name.startswith("adversarial")])
def test_recipes_have_the_published_numbers(name) -> None:
    recipe = RECIPES[name]()
    main, critic = recipe.optimizers
    assert (main.every, critic.every) == (5, 1)
    assert recipe.training.batch_size == 40
    if name.endswith("wgan"):
        assert (critic.learning_rate, critic.clamp, critic.clamp_every) == (5e-5, 0.01, 5)
    else:
        assert (critic.learning_rate, critic.betas) == (1e-3, (0.9, 0.999))
    released = name.endswith("as-released")
    assert (recipe.objectives[0].positions == "as_released") == released


def test_streams_have_a_share_though_they_are_told_none() -> None:
    assert StreamOptions("x", made().data, joins="in_turn").share == 0.5


@pytest.mark.slow
def test_the_language_test_learns_to_tell_what_the_states_tell(store, tmp_path) -> None:
    run = train(made(strength=0.0), store, tmp_path)
    write_result(result_of(run), tmp_path)
    options = LanguageTestOptions(epochs=20, batch_size=4)
    found = language_test(tmp_path, store, ["en", "fr"], options)
    assert read_json(tmp_path / "language-test-dev.json", "") == found
    assert found == language_test(tmp_path, store, ["en", "fr"], options)
    words = store.dataset(treebank.NAME, split="dev", lang="fr")
    stream = words.stream(shuffle=False)
    french = sum(len(set(row[row >= 0].tolist())) for one in stream for row in one["word_ids"])
    total = found["words"]["held_out"]
    assert found["majority"] == pytest.approx((total - french) / total)
    assert found["accuracy"] == pytest.approx(
        (found["per_language"]["fr"] * french + found["per_language"]["en"] * (total - french))
        / total
    )
    assert found["accuracy"] < 1, "two of the three French sentences are English ones, too"
    few = language_test(tmp_path, store, ["en", "fr"], replace(options, sentences=1))
    assert few["words"]["train"] < found["words"]["train"]


def slow_language_test(known, judges, judged, seed: int, epochs: int, size: int, patience: int):
    """The right words after the best pass, and its number; words are (state, language) each."""
    order = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    width = len(known[0][0][0])
    maps = torch.nn.Linear(width, 512), torch.nn.Linear(512, 2)
    adam = torch.optim.Adam([weight for one in maps for weight in one.parameters()], lr=1e-3)

    def right(words) -> list[bool]:
        return [int(maps[1](maps[0](state)).argmax()) == language for state, language in words]

    best, answer, last = 0.0, [], 0
    for number in range(1, epochs + 1):
        drawn = torch.randperm(len(known), generator=order).tolist()
        for start in range(0, len(drawn), size):
            chosen = sorted(drawn[start : start + size])
            words = [word for sentence in chosen for word in known[sentence]]
            scores = torch.stack([maps[1](maps[0](state)) for state, _ in words])
            gold = torch.tensor([language for _, language in words])
            adam.zero_grad()
            torch.nn.functional.cross_entropy(scores, gold).backward()
            adam.step()
        told = right(judges)
        shares = [
            np.mean([one for one, (_, own) in zip(told, judges, strict=True) if own == place])
            for place in (0, 1)
        ]
        if np.mean(shares) > best:
            best, answer, last = np.mean(shares), right(judged), number
        elif number - last >= patience:
            break
    return answer, last


@pytest.mark.parametrize("patience", [1, 5])
def test_the_released_language_test_equals_its_slow_twin(patience) -> None:
    """Two linear maps, and the weights of the pass that is best on dev."""
    draw = torch.Generator().manual_seed(0)
    parts = []
    for sentences in (12, 6, 6):
        rows = [torch.randn(1 + at % 4, 6, generator=draw) for at in range(sentences)]
        rows = [row + (0.7 if at % 2 else 0.0) for at, row in enumerate(rows)]
        parts.append([[(state, at % 2) for state in row] for at, row in enumerate(rows)])

    def words_of(part) -> Words:
        flat = [(state, own, at) for at, one in enumerate(part) for state, own in one]
        states, languages, numbers = zip(*flat, strict=True)
        return Words(torch.stack(states), torch.tensor(languages), torch.tensor(numbers))

    known, judges, judged = map(words_of, parts)
    options = replace(RELEASED, epochs=15, batch_size=5, patience=patience, seed=3)
    classifier, passes = trained_classifier(known, judges, 2, options, torch.device("cpu"))
    flat = [[word for one in part for word in one] for part in parts[1:]]
    expected, last = slow_language_test(parts[0], *flat, 3, 15, 5, patience)
    assert passes == last < 15, "no pass after the best one counts"
    assert right_words(classifier, judged, torch.device("cpu")).tolist() == expected


def test_the_released_language_test_reads_three_splits(store, tmp_path) -> None:
    run = train(made(strength=0.0), store, tmp_path)
    write_result(result_of(run), tmp_path)
    with pytest.raises(UnknownDatasetError, match=r"test/\*"):
        language_test(tmp_path, store, ["en", "fr"], RELEASED)
    options = replace(RELEASED, held_out="train", train="dev", select="dev", epochs=3)
    found = language_test(tmp_path, store, ["en", "fr"], options)
    assert 1 <= found["passes"] <= 3
    assert found["options"]["classifier"] == "linear"
    with pytest.raises(SpecError, match="`select=test` is held out, too"):
        replace(RELEASED, select="test")


ORDER_FREE = (
    *(f"data.dataset={treebank.NAME}", "streams.auxiliary.data.dataset=" + treebank.NAME),
    *("layers=1", "heads=2", "head_size=8", "feed_forward=16", "upos_width=16"),
    *("arc=16", "task.relation=8", "batch_size=3", "delay_batch_size=6", "threads=1"),
    *("epochs=4", "training.delay=2", "checkpoint_every=null", "log_every=1"),
    "learning_rate=0.01",
)


def test_the_order_free_parser_hides_its_language_word_by_word(store, tmp_path) -> None:
    recipe = with_settings(RECIPES["adversarial-orderfree"](), ORDER_FREE)
    run, reports = reported(recipe, store, tmp_path)
    assert "adversary.v1" not in reports[0].losses
    assert reports[-1].losses["auxiliary/adversary.v1"] > 0
    write_result(result_of(run), tmp_path)
    found = language_test(tmp_path, store, ["en", "fr"], LanguageTestOptions(epochs=2))
    train_words, held_out = found["words"]["train"], found["words"]["held_out"]
    dev = [store.dataset(treebank.NAME, split="dev", lang=lang) for lang in ("en", "fr")]
    words = sum(int(ParsedDataset(store, part).word_counts().sum()) for part in dev)
    assert held_out == words, "those without a piece, too, and ROOT is none of them"
    assert train_words > held_out


def test_the_language_test_of_one_language_is_refused(store, tmp_path) -> None:
    with pytest.raises(SpecError, match="`langs=en` is one language; name two or more"):
        language_test(tmp_path, store, ["en"])
    with pytest.raises(SpecError, match="is held out, too"):
        LanguageTestOptions(train="dev")
    with pytest.raises(SpecError, match="`sentences=0` must be at least 1"):
        LanguageTestOptions(sentences=0)
