"""Runs and what they report; some are cut off, as a killed process is, and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import torch

from featurestore import FeatureStore
from tests.trainer.conftest import CrashError
from trainer.batch import SyntaxBatch
from trainer.data import device_batches, open_source
from trainer.loop import Run, train
from trainer.options import Recipe
from trainer.progress import Evaluation, Report
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.results import write_result

_TASKS: Final = {name: make().task.name for name, make in RECIPES.items()}


def recipes_of(*tasks: str) -> list[str]:
    return [name for name, task in _TASKS.items() if task in tasks]


def finished(recipe: Recipe, store: FeatureStore, folder: Path) -> Run:
    """A run with its result in its folder."""
    run = train(recipe, store, folder)
    write_result(result_of(run), folder)
    return run


def reported(recipe: Recipe, store: FeatureStore, output: Path) -> tuple[Run, list[Report]]:
    """A finished run, and its reports."""
    events: list[Report | Evaluation] = []
    run = train(recipe, store, output, observers=[events.append])
    return run, [event for event in events if isinstance(event, Report)]


def batches_of(
    store: FeatureStore, recipe: Recipe, split: str = "dev", training: bool = False
) -> list[SyntaxBatch]:
    """Batches of a split, in order, or those of the first epoch of a training."""
    source, device = open_source(store, recipe, split, "en"), torch.device("cpu")
    stream = (
        source.training_stream(recipe, device, epoch=0, rank=0, world_size=1)
        if training
        else source.evaluation_stream(recipe)
    )
    return [*device_batches(stream, recipe, source.task, device)]


def resumed(recipe: Recipe, store: FeatureStore, folder: Path, step: int) -> Run:
    """A run that is stopped by the first event from a step on, and goes on."""

    def stop(event: object) -> None:
        if getattr(event, "step", 0) >= step:
            raise CrashError

    with pytest.raises(CrashError):
        train(recipe, store, folder, observers=[stop])
    torch.rand(3)  # what else the process draws is nothing to it
    return train(recipe, store, folder, resume=True)
