"""Small language models from scratch that objectives over trees teach: TreeReg, tree-planting.

Both models have the size of MicroBERT: the smallest at which the losses can be studied without a
GPU; the papers' models have 12 or 16 layers. TreeReg reads a quarter of the heads of a layer about
three quarters up (the release, README), with a tenth of the loss at every step, where the authors
take all of it at every tenth step; tree-planting supervises the first head of the last layer
with the weight 0.5 (Yoshida et al. 2024, and the release, README). The rest is our own choice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trainer import options
from trainer.options import (
    DataOptions,
    ObjectiveOptions,
    Recipe,
    StockOptions,
    TrainingOptions,
    TreePlantingOptions,
    TreeRegOptions,
)
from trainer.recipes.base import RECIPES, variant

_TREE_REG: Final = TreeRegOptions(states=2, heads=2, weight=0.1)
_PLANTING: Final = TreePlantingOptions(weight=0.5)

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


def clm() -> Recipe:
    """Causal language modelling alone, from scratch: the baseline of the two below."""
    return Recipe(
        name="clm",
        data=DataOptions(dataset="text", joint_root=False, separator_edge="none"),
        model=StockOptions(encoder="parsebank-micro-causal", weights="random"),
        task=options.ClmOptions(),
        training=_TRAINING,
    )


def clm_treereg() -> Recipe:
    """Causal language modelling with tree regularization (TreeReg)."""
    return _with(clm(), "clm-treereg", _TREE_REG)


def clm_treereg_as_released() -> Recipe:
    """The same, with the mean over a sentence's brackets that the authors' code takes."""
    return variant(clm_treereg(), "as-released", "objectives.tree_reg.average=as_released")


def clm_treereg_constituents() -> Recipe:
    """TreeReg with the constituents of bracket files, which the text is taken from, too."""
    settings = ("data.dataset=brackets", "objectives.tree_reg.constituents=constituents")
    return variant(clm_treereg(), "constituents", *settings)


def clm_planting() -> Recipe:
    """Causal language modelling with a tree-planted head (Tree-Planted Transformers)."""
    return _with(clm(), "clm-planting", _PLANTING)


def mlm_treereg() -> Recipe:
    """Masked language modelling with tree regularization, over an encoder from scratch."""
    return _with(_mlm(), "mlm-treereg", _TREE_REG)


def mlm_planting() -> Recipe:
    """Masked language modelling with a tree-planted head, over an encoder from scratch."""
    return _with(_mlm(), "mlm-planting", _PLANTING)


def _mlm() -> Recipe:
    model = StockOptions(encoder="parsebank-micro", weights="random")
    return replace(clm(), model=model, task=options.MlmOptions())


def _with(recipe: Recipe, name: str, objective: ObjectiveOptions) -> Recipe:
    return replace(recipe, name=name, objectives=(objective,))


RECIPES.add("clm", clm)
RECIPES.add("clm-treereg", clm_treereg)
RECIPES.add("clm-treereg-as-released", clm_treereg_as_released)
RECIPES.add("clm-treereg-constituents", clm_treereg_constituents)
RECIPES.add("clm-planting", clm_planting)
RECIPES.add("mlm-treereg", mlm_treereg)
RECIPES.add("mlm-planting", mlm_planting)
