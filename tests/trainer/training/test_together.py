"""Everything that pre-training has, at once: gold among parsed text, all objectives, processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from featurestore import FeatureStore, open_store
from tests.trainer.recorded import examples_of_steps, outcome
from tests.trainer.runs import reported, resumed
from tests.trainer.training.test_resume import finish
from tests.trainer.treebank import DOG, DU, EATEN, TREES, append_treebank
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

SMALL = (
    *("model.hidden_size=16", "model.heads=2", "model.layers=2", "model.feed_forward=16"),
    *("model.max_positions=64", "max_length=64", "training.batch_size=4", "accumulation=2"),
    *("data.lang=en", "max_steps=8", "warmup_steps=2", "log_every=1", "evaluate_every=4"),
    "checkpoint_every=2",
)


@pytest.fixture(scope="module")
def uri(tmp_path_factory, tokenizer) -> str:
    """36 texts of two or more sentences with trees of a parser, and three gold trees."""
    folder = str(tmp_path_factory.mktemp("together") / "store")
    texts = tuple(one + other for one in TREES for other in TREES)
    with open_store(folder) as store:
        append_treebank(store, tokenizer, "train", texts, tuple(range(36)), name="silver")
        append_treebank(store, tokenizer, "dev", texts[:8], tuple(range(8)), name="silver")
        append_treebank(store, tokenizer, "train", (DOG, EATEN, DU), name="gold")
    return folder


@pytest.fixture
def opened(uri) -> Iterator[FeatureStore]:
    with open_store(uri) as store:
        yield store


def recipe_of(name: str, *settings: str) -> Recipe:
    return with_settings(RECIPES[name](), [*SMALL, *settings])


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "-as-released"])
def test_a_run_of_everything_resumes_to_the_same_losses(opened, tmp_path, end) -> None:
    """Five steps make an epoch: the run is cut in the first and ends in the second."""
    recipe = recipe_of(f"microbert-mlm-xpos-phrase-tree-sla{end}")
    whole, reports = reported(recipe, opened, tmp_path / "whole")
    assert whole.progress.epoch == 1
    assert len(whole.progress.losses) == 8
    for name in ("task", "xpos_tagging.v1", "phrase.v1", "tree.v1"):
        assert any(report.losses[name] > 0 for report in reports), name
    cut = resumed(recipe, opened, tmp_path / "cut", step=5)
    assert cut.progress.resumed == [{"step": 4, "changed": {}}]
    assert cut.progress.losses == whole.progress.losses
    assert cut.progress.evaluations == whole.progress.evaluations
    assert cut.progress.outcomes == whole.progress.outcomes


NOTHING_DRAWN = ("model.layer_dropout=0", "model.dropout=0")


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one_with_as_large_a_batch(uri, tmp_path: Path) -> None:
    """Four steps of eight examples; the batches of a step are those of both processes."""
    settings = (*NOTHING_DRAWN, "max_steps=4", "precision=fp32", "training.threads=1")
    name = "microbert-mlm-xpos-phrase-tree-sla"
    one, two = tmp_path / "one", tmp_path / "two"
    finish(uri, one, recipe_of(name, *settings), 1)
    finish(uri, two, recipe_of(name, *settings, "accumulation=1"), 1, processes=2)
    assert {step: sorted(names) for step, names in examples_of_steps(one).items()} == {
        step: sorted(names) for step, names in examples_of_steps(two).items()
    }
    alone, both = outcome(one), outcome(two)
    assert len(both["losses"]) == 4
    assert both["losses"] == pytest.approx(alone["losses"], rel=1e-5)
    assert both["scores"][-1]["loss"] == pytest.approx(alone["scores"][-1]["loss"], rel=1e-5)
    weights = [Path(two, f"weights-{rank}").read_text() for rank in (0, 1)]
    assert weights[0] == weights[1]
