"""PLBART's runs (Ahmad et al. 2021): denoising of three languages, and what starts from it.

Pre-training is as in sections 2.1 and 2.2 of the paper, fine-tuning as in section 2.3. Weight
decay, clipping and the loss, a plain cross-entropy, are those of the released script
(``pretrain/absolute.sh``, commit 2bd0b7e), of which the paper says nothing. That script has no
schedule of dropout and names no beta2, which is .999 in fairseq; nor does fairseq spare biases and
LayerNorm from decay. To fine-tune, set ``model.start_from`` to the pre-trained run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trainer import options
from trainer.options import (
    DataOptions,
    GroupOptions,
    OptimizerOptions,
    PlbartOptions,
    Recipe,
    StreamOptions,
    TrainingOptions,
)
from trainer.recipes.base import RECIPES, variant

_PRETRAINING: Final = TrainingOptions(
    batch_size=32,
    accumulation=64,
    max_steps=100_000,
    learning_rate=3e-4,
    betas=(0.9, 0.98),
    epsilon=1e-6,
    weight_decay=0.01,
    warmup_steps=2000,
    clip_norm=0.1,
    share_exponent=0.3,
    evaluate_every=2000,
    checkpoint_every=2000,
    log_every=100,
    keep="last",
)
_FINE_TUNING: Final = TrainingOptions(
    batch_size=32,
    max_steps=100_000,
    learning_rate=3e-5,
    betas=(0.9, 0.98),
    epsilon=1e-6,
    warmup_steps=2500,
    evaluate_every=1000,
    checkpoint_every=1000,
    log_every=100,
    patience=10,
)


def _texts(dataset: str) -> DataOptions:
    return DataOptions(
        dataset=dataset,
        policy="none",
        joint_root=False,
        separator_edge="none",
        max_length=512,
    )


def plbart() -> Recipe:
    """Denoising of Java, Python and English; a dataset and a stream for each."""
    return Recipe(
        name="plbart",
        data=_texts("java"),
        model=PlbartOptions(dropout_steps=(50_000, 80_000), dropouts=(0.05, 0.0)),
        task=options.DenoisingOptions(language="java"),
        training=_PRETRAINING,
        streams=tuple(
            StreamOptions(
                name=name,
                data=_texts(name),
                task=options.DenoisingOptions(language=name),
                share=1 / 3,
            )
            for name in ("python", "en")
        ),
    )


def plbart_as_released() -> Recipe:
    """The same as the released script has it: noise, dropout, optimizer, 60 batches a step."""
    own = ("noise=as_released", "covered=0.3")
    prefixes = ("task", "streams.python.task", "streams.en.task")
    noise = [f"{prefix}.{setting}" for prefix in prefixes for setting in own]
    everything = GroupOptions("everything", (".*",), weight_decay=_PRETRAINING.weight_decay)
    plain = replace(
        plbart(),
        model=PlbartOptions(),
        training=replace(_PRETRAINING, betas=(0.9, 0.999), accumulation=60),
        optimizers=(OptimizerOptions("main", groups=(everything,)),),
    )
    return variant(plain, "as-released", *noise)


def plbart_generation() -> Recipe:
    """A text from another, such as English from Python."""
    return Recipe(
        name="plbart-generation",
        data=_texts("pairs"),
        model=PlbartOptions(),
        task=options.TranslationOptions(tie="all", source_language="python", language="en"),
        training=_FINE_TUNING,
    )


def plbart_classification() -> Recipe:
    """A class from the decoder's state of the last piece."""
    return Recipe(
        name="plbart-classification",
        data=_texts("clones"),
        model=PlbartOptions(states="decoder"),
        task=options.SequenceClassificationOptions(state="last"),
        training=_FINE_TUNING,
    )


RECIPES.add("plbart", plbart)
RECIPES.add("plbart-as-released", plbart_as_released)
RECIPES.add("plbart-generation", plbart_generation)
RECIPES.add("plbart-classification", plbart_classification)
