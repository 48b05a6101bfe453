"""A parser from any encoder, and how MicroBERT's encoders are evaluated.

The evaluation recipes follow the configurations of MicroBERT (commit d9c1e9f; Gessler and Zeldes
2022), which Gessler and Schneider (2023) use again. AllenNLP drops its ROOT like words; ours is not
dropped. What AllenNLP does where neither paper says so is in the recipes ``as-released``. The
figures of ``parser`` and ``constituency`` are our own choice: no paper has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trainer import options
from trainer.options import (
    DataOptions,
    GroupOptions,
    MicroBertOptions,
    OptimizerOptions,
    ParserOptions,
    Recipe,
    SyntaxBertOptions,
    TrainingOptions,
)
from trainer.options.parser import TaggerOptions
from trainer.recipes.base import RECIPES, variant

_ENCODER = SyntaxBertOptions(use_syntax=False)

_RELEASED_DECAY: Final = 0.01
"""Of AllenNLP's ``adamw`` where a configuration names none; it spares no weight."""

_RELEASED_PARSING: Final = (
    f"training.weight_decay={_RELEASED_DECAY}",
    "task.parser.states=layers",
    "task.mst_space=as_released",
    "task.single_root=false",
)

_RELEASED_TAGGING: Final = (
    f"training.weight_decay={_RELEASED_DECAY}",
    "task.tagger.states=layers",
    "task.tagger.crf_ends=false",
    "task.tagger.crf_loss=sum",
)


def parser() -> Recipe:
    """A biaffine parser with universal tags, from the gold trees of the dataset `ud`."""
    return Recipe(
        name="parser",
        data=_treebank(),
        model=_ENCODER,
        task=options.DependencyOptions(
            parser=ParserOptions(states="mix", pieces="mean"), upos=True
        ),
        training=TrainingOptions(
            batch_size=32,
            epochs=10,
            learning_rate=1e-3,
            warmup_share=0.1,
            evaluate_every="epoch",
        ),
        optimizers=_encoder_at(5e-5),
    )


def constituency() -> Recipe:
    """A CRF parser of constituents, from bracket files."""
    return replace(
        parser(),
        name="constituency",
        data=replace(_treebank(), dataset="brackets"),
        task=options.ConstituencyOptions(states="mix", pieces="mean"),
    )


def microbert_ud() -> Recipe:
    """MicroBERT's LAS on a treebank; the encoder learns, too."""
    lstm = ParserOptions(
        states="mix",
        pieces="mean",
        context="highway_lstm",
        context_layers=3,
        context_width=400,
        context_dropout=0.3,
        recurrent_dropout=0.3,
        arc=100,
        relation=100,
        activation="elu",
        dropout=0.3,
        shared_dropout=True,
        labels="bilinear",
    )
    return Recipe(
        name="microbert-ud",
        data=_treebank(),
        model=_ENCODER,
        task=options.DependencyOptions(parser=lstm, metric="las_no_punct_subtypes"),
        training=_training(max_steps=60_000, evaluate_every=200, clip_norm=0.0, clip_value=5.0),
        optimizers=_encoder_at(5e-5),
    )


def microbert_ud_frozen() -> Recipe:
    """MicroBERT's LAS on a treebank; the encoder stays as it is."""
    return replace(microbert_ud(), name="microbert-ud-frozen", optimizers=_encoder_at(0.0))


def microbert_ud_sla() -> Recipe:
    """The same for an encoder with local attention, over a parser's trees of the treebank."""
    return _over_parsed(microbert_ud())


def microbert_ud_frozen_sla() -> Recipe:
    """The same with the encoder as it is."""
    return _over_parsed(microbert_ud_frozen())


def _over_parsed(recipe: Recipe) -> Recipe:
    """Local attention reads the dataset `ud-parsed`; what is learned and scored is in `ud`."""
    recipe = with_local_attention(recipe)
    return replace(recipe, data=replace(recipe.data, dataset="ud-parsed", treebank="ud"))


def microbert_ud_as_released() -> Recipe:
    """The same as AllenNLP parses: layers alone are mixed, all weights decay, roots may be many."""
    recipe = replace(microbert_ud(), optimizers=_encoder_at(5e-5, _RELEASED_DECAY))
    return variant(recipe, "as-released", *_RELEASED_PARSING)


def microbert_ud_frozen_as_released() -> Recipe:
    """The same with the encoder as it is."""
    recipe = replace(microbert_ud_frozen(), optimizers=_encoder_at(0.0, _RELEASED_DECAY))
    return variant(recipe, "as-released", *_RELEASED_PARSING)


def microbert_ner() -> Recipe:
    """MicroBERT's F1 of entities: a CRF over BIOUL, and the encoder at 1e-5."""
    tagger = TaggerOptions(states="mix", pieces="mean", lstm_layers=2, crf="bioul")
    return Recipe(
        name="microbert-ner",
        data=DataOptions(dataset="wikiann"),
        model=_ENCODER,
        task=options.TokenClassificationOptions(label="ner_tags", tagger=tagger),
        training=_training(epochs=300, evaluate_every="epoch"),
        optimizers=_encoder_at(1e-5),
    )


def microbert_ner_sla() -> Recipe:
    """The same for an encoder with local attention, which reads the trees of the sentences."""
    return with_local_attention(microbert_ner())


def with_local_attention(recipe: Recipe) -> Recipe:
    """A recipe for an exported MicroBERT that keeps the local attention that it learned."""
    return replace(
        recipe,
        name=f"{recipe.name}-sla",
        data=replace(recipe.data, joint_root=False, separator_edge="none"),
        model=MicroBertOptions(weights="pretrained", sla=True),
    )


def microbert_ner_as_released() -> Recipe:
    """The same as AllenNLP tags: losses are summed, all weights learn at 1e-3 and decay."""
    everything = GroupOptions("everything", (".*",), weight_decay=_RELEASED_DECAY)
    optimizer = OptimizerOptions("main", groups=(everything,))
    recipe = replace(microbert_ner(), optimizers=(optimizer,))
    return variant(recipe, "as-released", *_RELEASED_TAGGING)


def _treebank() -> DataOptions:
    return DataOptions(dataset="ud", max_length=256, joint_root=False, separator_edge="none")


def _encoder_at(rate: float, decay: float | None = None) -> tuple[OptimizerOptions, ...]:
    """The encoder at its own rate; with ``decay``, every weight decays, biases among them."""
    groups = [GroupOptions("encoder", ("encoder",), learning_rate=rate, weight_decay=decay)]
    if decay is not None:
        groups.append(GroupOptions("rest", (r"(?!encoder\.).*",), weight_decay=decay))
    return (OptimizerOptions("main", groups=tuple(groups)),)


def _training(**further: object) -> TrainingOptions:
    common = TrainingOptions(
        batch_size=16, learning_rate=1e-3, schedule="constant", clip_norm=5.0, patience=50
    )
    return replace(common, **further)  # type: ignore[arg-type]


RECIPES.add("parser", parser)
RECIPES.add("constituency", constituency)
RECIPES.add("microbert-ud", microbert_ud)
RECIPES.add("microbert-ud-frozen", microbert_ud_frozen)
RECIPES.add("microbert-ud-sla", microbert_ud_sla)
RECIPES.add("microbert-ud-frozen-sla", microbert_ud_frozen_sla)
RECIPES.add("microbert-ud-as-released", microbert_ud_as_released)
RECIPES.add("microbert-ud-frozen-as-released", microbert_ud_frozen_as_released)
RECIPES.add("microbert-ner", microbert_ner)
RECIPES.add("microbert-ner-sla", microbert_ner_sla)
RECIPES.add("microbert-ner-as-released", microbert_ner_as_released)
