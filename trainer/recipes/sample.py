"""The bundled journey: a tiny encoder on the bundled sample, done in under a minute on a CPU.

No paper has these figures: they were chosen so that every part is small and the loss falls.
"""

from __future__ import annotations

from trainer.options import DataOptions, Recipe, SyntaxBertOptions, TrainingOptions
from trainer.recipes.base import RECIPES, probes


def sample() -> Recipe:
    """Inference on 400 pairs written for this project, with every part of the model at work."""
    return Recipe(
        name="sample",
        data=DataOptions(dataset="sample", tokenizer="parsebank-wordpiece-en", max_length=64),
        model=SyntaxBertOptions(
            encoder="parsebank-tiny",
            weights="random",
            gat_layers=2,
            gat_heads=2,
            gat_head_size=16,
            max_distance=2,
            syntax_heads=2,
        ),
        objectives=probes(0.01, rank=32),
        training=TrainingOptions(
            batch_size=16,
            epochs=20,
            learning_rate=2e-3,
            warmup_steps=20,
            evaluate_every=100,
            checkpoint_every=None,
            log_every=5,
            threads=1,
        ),
    )


RECIPES.add("sample", sample)
