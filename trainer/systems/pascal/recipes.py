"""Masked language modelling with parent-scaled attention, from scratch.

The paper translates; this project has no translation. Heads, layers and the probability of parent
ignoring are those of its English to German runs on News Commentary (release, commit 251a9ca): two
heads of the first layer, and 0.4. The rest is our own choice.
"""

from __future__ import annotations

from typing import Final

from trainer import options
from trainer.options import DataOptions, PascalOptions, Recipe, TrainingOptions
from trainer.recipes.base import RECIPES, variant

_TRAINING: Final = TrainingOptions(
    batch_size=32,
    max_steps=50_000,
    learning_rate=1e-3,
    weight_decay=0.01,
    warmup_steps=1_000,
    evaluate_every=5_000,
    checkpoint_every=5_000,
    log_every=100,
)


def pascal() -> Recipe:
    """Masked language modelling with heads that are scaled around parents, from scratch."""
    return Recipe(
        name="pascal-mlm",
        data=DataOptions(dataset="text", joint_root=False, separator_edge="none"),
        model=PascalOptions(encoder="parsebank-micro", weights="random"),
        task=options.MlmOptions(),
        training=_TRAINING,
    )


def pascal_as_released() -> Recipe:
    """The same, with the heads and examples scaled that the authors' code scales."""
    return variant(pascal(), "as-released", "model.scaled=as_released")


RECIPES.add("pascal-mlm", pascal)
RECIPES.add("pascal-mlm-as-released", pascal_as_released)
