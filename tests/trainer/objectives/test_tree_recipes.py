"""Recipes of tree objectives as they are used: by command line, and in some steps alone."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from featurestore import open_store
from tests.trainer.command import parsebank
from tests.trainer.treebank import NAME, append_treebank
from trainer.loop import train
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.progress import Evaluation, Report
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.results import read_result
from trainer.streams import feeding

SHORT = (
    *("batch_size=3", "warmup_steps=0", "log_every=1", "max_length=32", "threads=1"),
    *("evaluate_every=20", "checkpoint_every=null", "tokenizer=parsebank-wordpiece-en"),
)


def in_some_steps(share: float) -> Recipe:
    """Causal language modelling, with TreeReg over a stream of its own in some of the steps."""
    recipe = with_settings(RECIPES["clm"](), [*SHORT, f"data.dataset={NAME}", "max_steps=20"])
    stream = {
        "name": "trees",
        "data": recipe.to_json()["data"],
        "objectives": [{"name": "tree_reg.v1", "states": 2, "heads": 2}],
        "share": share,
        "joins": True,
    }
    return with_settings(recipe, [f"streams={json.dumps([stream])}"])


def test_tree_reg_can_join_every_tenth_step(tmp_path: Path, tokenizer) -> None:
    """As its authors train: the loss is there in a tenth of the steps, evenly far apart."""
    recipe, events = in_some_steps(0.1), list[Report | Evaluation]()
    fed = [step for step in range(1000) if "trees" in feeding(recipe, step)]
    assert abs(len(fed) - 100) <= 2
    assert {after - before for before, after in pairwise(fed)} <= set(range(5, 14))
    with open_store(str(tmp_path / "store")) as store:
        append_treebank(store, tokenizer, "train")
        append_treebank(store, tokenizer, "dev")
        run = train(recipe, store, tmp_path / "run", observers=[events.append])
    losses = [event.losses for event in events if isinstance(event, Report)]
    told = [step for step, loss in enumerate(losses) if "trees/tree_reg.v1" in loss]
    assert told == [step for step in fed if step < 20]
    assert all(losses[step]["trees/tree_reg.v1"] > 0 for step in told)
    assert result_of(run)["streams"]["trees"]["steps"] == len(told) == 2


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    """A store of the bundled sample, filled by the command line."""
    folder = tmp_path_factory.mktemp("sample") / "store"
    command = "backfill sample --split train,dev --lang en --limit 16 --name text --store"
    found = parsebank(*command.split(), str(folder))
    assert found.exit_code == 0, found.output
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("clm", "clm-treereg", "clm-treereg-as-released", "clm-planting"),
        *("mlm-treereg", "mlm-planting", "pascal-mlm", "pascal-mlm-as-released"),
    ],
)
def test_recipes_run_by_the_command_line(sample, tmp_path, name) -> None:
    sets = [part for one in SHORT for part in ("--set", one)]
    where = ["--store", str(sample), "--output", str(tmp_path / "run"), "--max-steps", "4"]
    found = parsebank("train", name, *where, *sets)
    assert found.exit_code == 0, (found.output, found.exception)
    result = read_result(tmp_path / "run")
    assert result["steps"] == 4
    assert np.isfinite(result["scores"]["loss"])
