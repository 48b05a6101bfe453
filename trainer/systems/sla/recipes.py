"""The runs of syntax-aware local attention (Li et al. 2021), as the scripts have them.

Passes are given for CoLA alone; the others have as many.
"""

from __future__ import annotations

from dataclasses import replace

from trainer import options
from trainer.options import Recipe, SlaOptions, TrainingOptions
from trainer.recipes.base import RECIPES, trees_of_words, variant

# Compared with train.sh of the release (commit e1b9397), which starts CoLA alone, and the defaults
# of run.py. It scores every 100 steps; the 500 here are our own choice, and SST-2 and FCE have the
# figures of CoLA.
_TRAINING = TrainingOptions(
    seed=17, batch_size=16, epochs=2, learning_rate=3e-5, warmup_steps=0, evaluate_every=500
)


def cola() -> Recipe:
    """CoLA, with local attention in every layer of BERT."""
    return Recipe(
        name="sla-cola",
        data=trees_of_words("cola"),
        model=SlaOptions(encoder="bert-base-uncased"),
        task=options.SequenceClassificationOptions(metric="mcc"),
        training=_TRAINING,
    )


def sst2() -> Recipe:
    """SST-2, with local attention in every layer of BERT."""
    return replace(
        cola(),
        name="sla-sst2",
        data=trees_of_words("sst2"),
        task=options.SequenceClassificationOptions(),
    )


def fce() -> Recipe:
    """FCE, which tokens are errors, with local attention in every layer of BERT."""
    return replace(
        cola(),
        name="sla-fce",
        data=trees_of_words("fce"),
        task=options.TokenClassificationOptions(label="errors", positive="i", metric="f05"),
    )


def cola_as_released() -> Recipe:
    """CoLA as the authors' own code trains it: their gate, punctuation near to all, the pooler."""
    return _as_released(cola(), "task.pooler=true")


def sst2_as_released() -> Recipe:
    """SST-2 as the authors' own code trains it: their gate, punctuation near to all, the pooler."""
    return _as_released(sst2(), "task.pooler=true")


def fce_as_released() -> Recipe:
    """FCE as the authors' own code trains it: six tags, F0.5 of spans, their gate, punctuation."""
    return _as_released(fce(), "task.positive=null")


def _as_released(recipe: Recipe, *further: str) -> Recipe:
    released = ("model.gate=as_released", "model.punctuation=pieces")
    return variant(recipe, "as-released", *released, *further)


def cola_as_in_lr_sib() -> Recipe:
    """CoLA as lr-sib's code masks it: its window, four edges, trees of pieces."""
    released = ("model.window=as_released", "model.threshold=4", "data.policy=attach")
    return variant(cola(), "lr-sib", *released)


RECIPES.add("sla-cola", cola)
RECIPES.add("sla-sst2", sst2)
RECIPES.add("sla-fce", fce)
RECIPES.add("sla-cola-as-released", cola_as_released)
RECIPES.add("sla-sst2-as-released", sst2_as_released)
RECIPES.add("sla-fce-as-released", fce_as_released)
RECIPES.add("sla-cola-lr-sib", cola_as_in_lr_sib)
