"""Syntax-BERT's runs (Bai et al. 2021).

Batches of 8, 3 epochs and 100 steps of warmup are the release's (commit 1225882); the rest is that
of SLA's run of CoLA.
"""

from __future__ import annotations

from dataclasses import replace

from trainer.options import Recipe, SyntaxMasksOptions
from trainer.recipes.base import RECIPES
from trainer.systems.sla.recipes import cola


def syntax_masks_cola() -> Recipe:
    """CoLA, with sub-networks in every layer of BERT."""
    recipe = cola()
    model = SyntaxMasksOptions(encoder=recipe.model.encoder)
    training = replace(recipe.training, batch_size=8, epochs=3, warmup_steps=100)
    return replace(recipe, name="syntax-masks-cola", model=model, training=training)


RECIPES.add("syntax-masks-cola", syntax_masks_cola)
