"""The graph encoder's own training (Ahmad et al. 2021, section 2.4).

We have no figures for it from the paper, and the release only loads what it gave: passes, learning
rate and evaluations are our own choice.
"""

from __future__ import annotations

from trainer import options
from trainer.options import DataOptions, Recipe, SyntaxGatOptions, TrainingOptions
from trainer.recipes.base import RECIPES
from trainer.systems.syntax_mbert.probes import probes


def gat_ud() -> Recipe:
    """The graph encoder alone, on gold trees of every language of the dataset ``ud``."""
    return Recipe(
        name="gat-ud",
        data=DataOptions(dataset="ud", lang="*"),
        model=SyntaxGatOptions(),
        objectives=probes(1.0),
        task=options.TreesOptions(),
        training=TrainingOptions(epochs=10, learning_rate=1e-4, evaluate_every=1000),
    )


RECIPES.add("gat-ud", gat_ud)
