"""GATE's runs (Ahmad et al. 2021, AAAI).

For another source, or two at once, set ``data.lang``. The scripts prune trees, which are whole
here. The baselines of relative positions tell 5 positions on each side for relations and 10 for
arguments (Ahmad 2021, the dissertation, Table 4.5); the scripts and ``-as-released`` tell 10.
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
    settings = ("use_syntax=false", "positions=sequence", "max_position=5")
    return variant(relation(), "relative", *settings)


def relation_structural() -> Recipe:
    """The baseline with relative positions in the whole tree."""
    settings = ("use_syntax=false", "positions=structure", "max_position=5")
    return variant(relation(), "structural", *settings)


def event_relative() -> Recipe:
    """The baseline with relative positions in the text: roles of event arguments."""
    return variant(event(), "relative", "use_syntax=false", "positions=sequence")


def event_structural() -> Recipe:
    """The baseline with relative positions in the whole tree: roles of event arguments."""
    return variant(event(), "structural", "use_syntax=false", "positions=structure")


def relation_as_released() -> Recipe:
    """Relations with every switch as released, and trees pruned as in the scripts."""
    return _as_released(relation(), "prune=1")


def relation_relative_as_released() -> Recipe:
    """The baseline with relative positions in the text, with every switch as released."""
    return _as_released(relation_relative())


def relation_structural_as_released() -> Recipe:
    """The baseline with relative positions in the tree, with every switch as released."""
    return _as_released(relation_structural())


def _as_released(recipe: Recipe, *further: str) -> Recipe:
    from trainer.tasks import TASKS

    both = (*SWITCHES, *TASKS[recipe.task.name].switches)
    switches = [f"{switch.option}=as_released" for switch in both]
    return variant(recipe, "as-released", *switches, "max_position=10", *further)


RECIPES.add("gate-relation", relation)
RECIPES.add("gate-event", event)
RECIPES.add("gate-relation-transformer", relation_transformer)
RECIPES.add("gate-event-transformer", event_transformer)
RECIPES.add("gate-relation-relative", relation_relative)
RECIPES.add("gate-relation-structural", relation_structural)
RECIPES.add("gate-event-relative", event_relative)
RECIPES.add("gate-event-structural", event_structural)
RECIPES.add("gate-relation-as-released", relation_as_released)
RECIPES.add("gate-relation-relative-as-released", relation_relative_as_released)
RECIPES.add("gate-relation-structural-as-released", relation_structural_as_released)
