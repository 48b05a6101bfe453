"""SG-Net's runs (Zhang et al. 2020, AAAI).

SQuAD and RACE are as in ``run_squad.sh`` and ``run_race.sh`` (commit 3b23546) and the defaults
behind them (epsilon is BertAdam's), but for batches of 16, the least that the paper has;
``-as-released`` has 8. The release trains neither SNLI nor a verifier: SNLI's figures are chosen
from the paper's ranges (learning rate 2e-5 or 3e-5, batches of 16, 24 or 32, 2 to 5 passes, 128
pieces), and the verifier's are those of SQuAD. It has no dropout before the map to answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trainer import options
from trainer.options import (
    DataOptions,
    Recipe,
    SgNetOptions,
    SgNetTransformerOptions,
    TrainingOptions,
)
from trainer.recipes.base import RECIPES, trees_of_words, variant
from trainer.systems.sgnet import SWITCHES
from trainer.systems.transformer.recipes import translation

_ENCODER = "bert-large-cased-whole-word-masking"
_OF_CLASSES = SgNetOptions(encoder=_ENCODER, specials="as_released")
"""Their class is read from [CLS], which is mixed here: else the layer would learn nothing."""


def snli() -> Recipe:
    """SNLI, within the paper's ranges: learning rate 2e-5, batches of 32, 3 epochs."""
    return Recipe(
        name="sgnet-snli",
        data=trees_of_words("snli"),
        model=_OF_CLASSES,
        training=_training(learning_rate=2e-5),
    )


def race() -> Recipe:
    """RACE: an article with a question before each of four options, 384 pieces."""
    return Recipe(
        name="sgnet-race",
        data=trees_of_words(
            "race",
            max_length=384,
            truncation_side="left",
            template=("article+question option_*",),
        ),
        model=_OF_CLASSES,
        task=options.MultipleChoiceOptions(group="level"),
        training=_training(learning_rate=8e-6, batch_size=16, evaluation_batch_size=16),
    )


def squad2() -> Recipe:
    """SQuAD 2.0: the passage in windows of 384 pieces before at most 64 of the question."""
    return Recipe(
        name="sgnet-squad2",
        data=_passages(stride=128),
        model=SgNetOptions(encoder=_ENCODER, dropout=0.0),
        task=options.ExtractiveQaOptions(segment=0, no_answer=True, tune_threshold=True),
        training=_training(learning_rate=3e-5, batch_size=16, evaluation_batch_size=16),
    )


def squad2_verifier() -> Recipe:
    """The verifier of answers to SQuAD 2.0, for ``parsebank verify`` beside the other."""
    return Recipe(
        name="sgnet-squad2-verifier",
        data=_passages(),
        model=_OF_CLASSES,
        task=options.SequenceClassificationOptions(label="answerable"),
        training=_training(learning_rate=3e-5, batch_size=16, evaluation_batch_size=16),
    )


def atis() -> Recipe:
    """Intents and slots of ATIS, which the paper does not have: slots are read from words."""
    return Recipe(
        name="sgnet-atis",
        data=trees_of_words("atis"),
        model=SgNetOptions(encoder=_ENCODER),
        task=options.IntentSlotsOptions(metric="slot_f1"),
        training=_training(learning_rate=2e-5, evaluate_every="epoch", keep="last"),
    )


def sgnet_translation() -> Recipe:
    """Translation with SG-Net's layer; the source alone is parsed."""
    return replace(translation(), name="sgnet-translation", model=SgNetTransformerOptions())


def race_as_released() -> Recipe:
    """RACE as the released script trains it: every switch as released, trees of pieces."""
    return _as_released(race())


def squad2_as_released() -> Recipe:
    """SQuAD 2.0 as the released script trains it, whose threshold of "no answer" is 0."""
    return _as_released(squad2(), "task.tune_threshold=false")


def _as_released(recipe: Recipe, *further: str) -> Recipe:
    switches = [f"{switch.option}=as_released" for switch in SWITCHES]
    batches = ("training.batch_size=8", "training.evaluation_batch_size=8")
    settings = (*switches, "data.policy=attach", "training.seed=42", *batches, *further)
    return variant(recipe, "as-released", *settings)


def _passages(**options: Any) -> DataOptions:
    return trees_of_words(
        "squad",
        max_length=384,
        template=("passage question",),
        truncation="only_first",
        segment_limits=(None, 64),
        **options,
    )


def _training(**options: Any) -> TrainingOptions:
    return TrainingOptions(epochs=3, weight_decay=0.01, epsilon=1e-6, warmup_share=0.1, **options)


RECIPES.add("sgnet-snli", snli)
RECIPES.add("sgnet-race", race)
RECIPES.add("sgnet-squad2", squad2)
RECIPES.add("sgnet-squad2-verifier", squad2_verifier)
RECIPES.add("sgnet-atis", atis)
RECIPES.add("sgnet-race-as-released", race_as_released)
RECIPES.add("sgnet-squad2-as-released", squad2_as_released)
RECIPES.add("sgnet-translation", sgnet_translation)
