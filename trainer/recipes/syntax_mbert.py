"""Syntax-MBERT's classification runs (Ahmad et al. 2021, table 4), and the shipped scripts'.

Hyper-parameters common to all: mBERT, learning rate 2e-5, AdamW with epsilon 1e-8 and no weight
decay, no warm-up, linear decay, clipping at 1, batches of 32, 4 graph layers of 4 heads of 64,
one syntactic head in every layer, selection on English dev accuracy every 2,000 steps.
"""

from __future__ import annotations

from dataclasses import replace

from trainer.options import DataOptions, Recipe, SyntaxBertOptions, TrainingOptions
from trainer.options.settings import with_settings
from trainer.recipes.base import RECIPES
from trainer.switches import SYNTAX_MBERT


def xnli() -> Recipe:
    """XNLI from English: delta 4, alpha 0."""
    return Recipe(
        name="xnli",
        data=DataOptions(dataset="xnli"),
        model=SyntaxBertOptions(max_distance=4, structure_weight=0.0),
        training=TrainingOptions(epochs=5, evaluate_every=2000),
    )


def pawsx() -> Recipe:
    """PAWS-X from English: delta 4, alpha 0.5."""
    return Recipe(
        name="pawsx",
        data=DataOptions(dataset="pawsx"),
        model=SyntaxBertOptions(max_distance=4, structure_weight=0.5),
        training=TrainingOptions(epochs=5, evaluate_every=2000),
    )


def as_released(recipe: Recipe) -> Recipe:
    """The run that the shipped script starts: every switch as released, and alpha 1."""
    settings = [f"{switch.option}=as_released" for switch in SYNTAX_MBERT]
    changed = with_settings(recipe, [*settings, "model.structure_weight=1"])
    return replace(changed, name=f"{recipe.name}-as-released")


def xnli_as_released() -> Recipe:
    """XNLI as the released script trains it: every switch as released, alpha 1."""
    return as_released(xnli())


def pawsx_as_released() -> Recipe:
    """PAWS-X as the released script trains it: every switch as released, alpha 1."""
    return as_released(pawsx())


RECIPES.add("xnli", xnli)
RECIPES.add("pawsx", pawsx)
RECIPES.add("xnli-as-released", xnli_as_released)
RECIPES.add("pawsx-as-released", pawsx_as_released)
