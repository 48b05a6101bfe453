"""SG-Net's runs (Zhang et al. 2020, AAAI).

Common to all: whole-word-masked BERT large, warm-up over the first tenth of the steps, weight decay
0.01. Trees are of whole words, as the paper has it.
"""

from __future__ import annotations

from trainer.options import DataOptions, Recipe, SgNetOptions, TrainingOptions
from trainer.recipes.base import RECIPES


def snli() -> Recipe:
    """SNLI, with the middle of the paper's ranges: learning rate 2e-5, batches of 32, 3 epochs."""
    return Recipe(
        name="sgnet-snli",
        data=DataOptions(
            dataset="snli", policy="broadcast", joint_root=False, separator_edge="none"
        ),
        model=SgNetOptions(encoder="bert-large-uncased-whole-word-masking"),
        training=TrainingOptions(epochs=3, learning_rate=2e-5, weight_decay=0.01, warmup_share=0.1),
    )


RECIPES.add("sgnet-snli", snli)
