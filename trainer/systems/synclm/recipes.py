"""The pre-training runs of SynCLM (Zhang et al. 2022), from RoBERTa base.

Losses and samples are ``as published`` in the words of Gessler and Schneider 2023 (equations 10 to
12), whose sets are those of lr-sib, but for phrases, which are one edge higher. The rest is the
release's (PaddlePaddle/Research, commits 3ae825a8 and fa380b0f), but for batches, which it fills up
to 6,250 pieces, and for clipping, evaluation and checkpoints, our own choice.
"""

from __future__ import annotations

from typing import Final

from trainer import options
from trainer.options import (
    DataOptions,
    PhraseContrastOptions,
    Recipe,
    StockOptions,
    TrainingOptions,
    TreeContrastOptions,
)
from trainer.recipes.base import RECIPES, variant

_TRAINING: Final = TrainingOptions(
    batch_size=12,
    max_steps=3_000_000,
    learning_rate=3e-5,
    betas=(0.9, 0.98),
    epsilon=1e-6,
    weight_decay=0.005,
    warmup_steps=24_000,
    evaluate_every=10_000,
    checkpoint_every=10_000,
    log_every=100,
    evaluation_batch_size=12,
)


_RELEASED_SAMPLERS: Final = (
    "phrase(way=synclm, max_samples=1024)",
    "tree(way=synclm, max_samples=512, negatives=30)",
)
"""Those of the release's script, which takes every sample that a sequence of 512 pieces has."""


def synclm() -> Recipe:
    """Masked whole words, and contrasts of phrases and of trees, from RoBERTa."""
    return Recipe(
        name="synclm",
        data=DataOptions(
            dataset="text",
            policy="attach",
            joint_root=False,
            separator_edge="none",
            max_length=512,
            samplers=("phrase(way=lr_sib)", "tree(way=lr_sib)"),
        ),
        model=StockOptions(encoder="roberta-base"),
        task=options.MlmOptions(whole_words=True),
        objectives=(PhraseContrastOptions(), TreeContrastOptions()),
        training=_TRAINING,
    )


def synclm_as_released() -> Recipe:
    """SynCLM as its release trains it: other samples, losses with the sign turned, projections."""
    return variant(
        synclm(),
        "as-released",
        f"samplers={','.join(_RELEASED_SAMPLERS)}",
        "objectives.phrase.phrase_loss=synclm",
        "objectives.phrase.attention=after_dropout",
        "objectives.tree.tree_root=in",
        "objectives.tree.projection=true",
    )


def synclm_as_in_lr_sib() -> Recipe:
    """SynCLM's losses as the re-implementation lr-sib computes them."""
    return variant(
        synclm(),
        "lr-sib",
        "samplers=phrase(way=lr_sib, max_height=1),tree(way=lr_sib)",
        "objectives.phrase.phrase_loss=lr_sib",
        "objectives.phrase.attention=after_dropout",
        "objectives.tree.tree_topk=released",
    )


RECIPES.add("synclm", synclm)
RECIPES.add("synclm-as-released", synclm_as_released)
RECIPES.add("synclm-lr-sib", synclm_as_in_lr_sib)
