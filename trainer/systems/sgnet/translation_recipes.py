"""SG-Net's run of translation (Zhang et al. 2020): its baseline, with the syntax-guided layer."""

from __future__ import annotations

from dataclasses import replace

from trainer.options import Recipe, SgNetTransformerOptions
from trainer.recipes.base import RECIPES
from trainer.systems.transformer.recipes import translation


def sgnet_translation() -> Recipe:
    """Translation with SG-Net's layer; the source alone is parsed."""
    return replace(translation(), name="sgnet-translation", model=SgNetTransformerOptions())


RECIPES.add("sgnet-translation", sgnet_translation)
