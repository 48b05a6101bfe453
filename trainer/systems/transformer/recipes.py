"""Translation without syntax: the base model of Vaswani et al. 2017 as SG-Net's baseline has it.

Figures are those of Zhang et al. 2020 (SG-Net), section 5.2: the rate rises for 8,000 steps to the
inverse root of 512 times 8,000. The paper clips no gradients and says no length penalty; 0.6 is
ours, as are sequences of at most 256 pieces and checkpoints.
"""

from __future__ import annotations

from typing import Final

from trainer import options
from trainer.options import Recipe, TrainingOptions, TransformerOptions
from trainer.recipes.base import RECIPES, trees_of_words

WARMUP: Final = 8000
TRAINING: Final = TrainingOptions(
    batch_tokens=16_384,
    max_steps=300_000,
    learning_rate=(512 * WARMUP) ** -0.5,
    schedule="inverse_sqrt",
    warmup_steps=WARMUP,
    betas=(0.9, 0.98),
    epsilon=1e-9,
    clip_norm=0.0,
    evaluate_every=1000,
    checkpoint_every=1000,
    log_every=100,
)


def translation() -> Recipe:
    """Translation by a Transformer of base size, without syntax."""
    return Recipe(
        name="translation",
        data=trees_of_words("translation", max_length=256),
        model=TransformerOptions(),
        task=options.TranslationOptions(),
        training=TRAINING,
    )


RECIPES.add("translation", translation)
