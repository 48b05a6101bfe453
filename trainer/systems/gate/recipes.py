"""GATE's runs (Ahmad et al. 2021, AAAI).

Common to all: frozen multilingual BERT, a Transformer layer of 8 heads, dropout 0.5, batches of 50,
SGD from 0.1, multiplied by 0.9 after each pass that is no better once five are done, clipping at 5,
at most 200 passes, an end after 20 without a better one, seed 1013. For another source, or two at
once, set ``data.lang``. The baselines of relative positions tell 16 positions on each side, as Shaw
et al. do; the scripts tell 10, and so do the recipes ``-as-released``.
"""

from __future__ import annotations

from trainer import options
from trainer.options import GateOptions, Recipe, TrainingOptions
from trainer.recipes.base import RECIPES, variant, whole_sentences
from trainer.systems.gate import SWITCHES

# Compared with relation.sh and event.sh of the release (commit 1e48504): these figures and those of
# `GateOptions`, but for word_dropout, which the release applies in evaluation alone. It trains the
# baselines on events only (vaswani.sh, shaw.sh, wang_etal.sh); its structural positions are of the
# whole tree (clie/objects/sentence.py, struct_position), whatever prune_k says.
_TRAINING = TrainingOptions(
    seed=1013,
    batch_size=50,
    epochs=200,
    optimizer="sgd",
    learning_rate=0.1,
    schedule="plateau",
    decay=0.9,
    decay_after=5,
    clip_norm=5.0,
    evaluate_every="epoch",
    patience=20,
)


def relation() -> Recipe:
    """Relations of ACE 2005: four syntactic heads, which see 2, 2, 4 and 4 edges."""
    return Recipe(
        name="gate-relation",
        data=whole_sentences("ace-relations"),
        model=GateOptions(),
        task=options.RelationOptions(),
        training=_TRAINING,
    )


def event() -> Recipe:
    """Roles of event arguments of ACE 2005: four syntactic heads, which see 1 edge, and types."""
    return Recipe(
        name="gate-event",
        data=whole_sentences("ace-events"),
        model=GateOptions(deltas=(1, 1, 1, 1), use_types=True),
        task=options.RelationOptions(),
        training=_TRAINING,
    )


def relation_transformer() -> Recipe:
    """The Transformer baseline: relations without trees."""
    return variant(relation(), "transformer", "use_syntax=false")


def event_transformer() -> Recipe:
    """The Transformer baseline: roles of event arguments without trees."""
    return variant(event(), "transformer", "use_syntax=false")


def relation_relative() -> Recipe:
    """The baseline with relative positions in the text."""
    return variant(relation(), "relative", "use_syntax=false", "positions=sequence")


def relation_structural() -> Recipe:
    """The baseline with relative positions in the whole tree."""
    settings = ("use_syntax=false", "positions=structure", "prune=-1")
    return variant(relation(), "structural", *settings)


def relation_as_released() -> Recipe:
    """Relations with every switch as released."""
    return _as_released(relation())


def relation_relative_as_released() -> Recipe:
    """The baseline with relative positions in the text, with every switch as released."""
    return _as_released(relation_relative())


def relation_structural_as_released() -> Recipe:
    """The baseline with relative positions in the tree, with every switch as released."""
    return _as_released(relation_structural())


def _as_released(recipe: Recipe) -> Recipe:
    from trainer.tasks import TASKS  # imports torch

    both = (*SWITCHES, *TASKS[recipe.task.name].switches)
    switches = [f"{switch.option}=as_released" for switch in both]
    return variant(recipe, "as-released", *switches, "max_position=10")


RECIPES.add("gate-relation", relation)
RECIPES.add("gate-event", event)
RECIPES.add("gate-relation-transformer", relation_transformer)
RECIPES.add("gate-event-transformer", event_transformer)
RECIPES.add("gate-relation-relative", relation_relative)
RECIPES.add("gate-relation-structural", relation_structural)
RECIPES.add("gate-relation-as-released", relation_as_released)
RECIPES.add("gate-relation-relative-as-released", relation_relative_as_released)
RECIPES.add("gate-relation-structural-as-released", relation_structural_as_released)
