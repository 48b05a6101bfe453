"""GATE's runs (Ahmad et al. 2021, AAAI).

For another source, or two at once, set ``data.lang``. The scripts prune trees, which are whole
here. The baselines of relative positions tell 5 positions on each side for relations and 10 for
arguments (Ahmad 2021, the dissertation, Table 4.5); the scripts and ``-as-released`` tell 10. The
baselines CL_GCN, CL_RNN and CL_Trans_GCN have the sizes and rates of the scripts in
``scripts/cl_gcn``, ``scripts/cl_rnn`` and ``scripts/cl_trans_gcn``.
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


def relation_depth() -> Recipe:
    """The baseline with absolute positions in the tree."""
    return variant(relation(), "depth", "use_syntax=false", "positions=depth")


def event_depth() -> Recipe:
    """The baseline with absolute positions in the tree: roles of event arguments."""
    return variant(event(), "depth", "use_syntax=false", "positions=depth")


_CONVOLUTIONS = ("context=gcn", "model.layers=2", "context_width=200")
_GCN = (*_CONVOLUTIONS, "seed=1111")
_ADAM = ("optimizer=adamw", "learning_rate=1e-3", "schedule=constant")
_RNN = ("use_syntax=false", "context=lstm", "model.layers=1", "context_width=300", *_ADAM)
_TRANSLATED = (*_CONVOLUTIONS, *_ADAM, "target=zh", "seed=9174")


def relation_gcn() -> Recipe:
    """The baseline CL_GCN (Subburathinam et al. 2019): graph convolutions over the tree."""
    return variant(relation(), "gcn", *_GCN)


def event_gcn() -> Recipe:
    """The baseline CL_GCN: roles of event arguments."""
    return variant(event(), "gcn", *_GCN)


def relation_gcn_as_released() -> Recipe:
    """The baseline CL_GCN with every switch as released, and trees pruned as in its script."""
    return _as_released(relation_gcn(), "prune=1")


def relation_rnn() -> Recipe:
    """The baseline CL_RNN (Ni and Florian 2019): an LSTM in both directions, without trees."""
    return variant(relation(), "rnn", *_RNN, "seed=9137")


def event_rnn() -> Recipe:
    """The baseline CL_RNN: roles of event arguments."""
    return variant(event(), "rnn", *_RNN, "seed=1111")


def relation_vectors() -> Recipe:
    """Relations from aligned word vectors in place of a frozen encoder (Multi-WE, Table 4.7)."""
    return variant(relation(), "vectors", "words=vectors", "vectors=wiki.{lang}.align.vec")


def event_vectors() -> Recipe:
    """Roles of event arguments from aligned word vectors (Multi-WE, Table 4.7)."""
    return variant(event(), "vectors", "words=vectors", "vectors=wiki.{lang}.align.vec")


def relation_translated() -> Recipe:
    """The baseline CL_Trans_GCN (Liu et al. 2019): CL_GCN over word vectors and translations."""
    return variant(relation_vectors(), "translated", *_TRANSLATED)


def event_translated() -> Recipe:
    """The baseline CL_Trans_GCN: roles of event arguments."""
    return variant(event_vectors(), "translated", *_TRANSLATED)


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
RECIPES.add("gate-relation-depth", relation_depth)
RECIPES.add("gate-event-depth", event_depth)
RECIPES.add("gate-relation-gcn", relation_gcn)
RECIPES.add("gate-event-gcn", event_gcn)
RECIPES.add("gate-relation-rnn", relation_rnn)
RECIPES.add("gate-event-rnn", event_rnn)
RECIPES.add("gate-relation-vectors", relation_vectors)
RECIPES.add("gate-event-vectors", event_vectors)
RECIPES.add("gate-relation-vectors-translated", relation_translated)
RECIPES.add("gate-event-vectors-translated", event_translated)
RECIPES.add("gate-relation-as-released", relation_as_released)
RECIPES.add("gate-relation-gcn-as-released", relation_gcn_as_released)
RECIPES.add("gate-relation-relative-as-released", relation_relative_as_released)
RECIPES.add("gate-relation-structural-as-released", relation_structural_as_released)
