"""The pre-training runs of MicroBERT: the ten conditions of Gessler and Schneider 2023, table 2.

An eleventh has the parser of Gessler and Zeldes 2022. The released configuration has tags and that
parser in all conditions, which the runs ``as-released`` are. Every ninth example of an epoch is of
the treebank ``data.gold``. For a language, set ``data.lang`` and the names of the datasets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trainer import options
from trainer.options import (
    DataOptions,
    GroupOptions,
    MicroBertOptions,
    OptimizerOptions,
    Recipe,
    TrainingOptions,
)
from trainer.options.settings import section_from_json
from trainer.recipes.base import RECIPES, variant

# Compared with configs/sgcl.jsonnet of lr-sib (commit 61e8873). The scores of an evaluation select
# nothing: the release, too, writes the last weights.
_TRAINING: Final = TrainingOptions(
    batch_size=32,
    accumulation=8,
    max_steps=62_500,
    learning_rate=3e-3,
    betas=(0.9, 0.98),
    epsilon=1e-6,
    weight_decay=0.01,
    schedule="cosine",
    warmup_steps=10_000,
    clip_norm=0.0,
    evaluate_every=10_000,
    checkpoint_every=10_000,
    log_every=100,
    keep="last",
)

_EVERYTHING_DECAYS: Final = (
    OptimizerOptions(
        "main", groups=(GroupOptions("everything", (".*",), weight_decay=_TRAINING.weight_decay),)
    ),
)

_SAMPLERS: Final = {
    "phrase.v1": "phrase(way=lr_sib)",
    "tree.v1": "tree(way=lr_sib, negatives=3, exchanges=1)",
}
"""Up to three negatives of a tree, each with one part exchanged (Gessler and Schneider 2023)."""

_RELEASED_SAMPLERS: Final = {
    "phrase.v1": "phrase(way=lr_sib, max_height=1, max_samples=512)",
    "tree.v1": "tree(way=lr_sib, max_samples=512)",
}
"""Phrases of a word and its dependents, and as many samples as a sequence has."""

_RELEASED_OBJECTIVES: Final = {
    "xpos_tagging.v1": ("objectives.xpos_tagging.tags=as_released",),
    "dependency.v1": (
        "objectives.dependency.rows=as_released",
        "objectives.dependency.average=as_released",
    ),
    "phrase.v1": (
        "objectives.phrase.phrase_loss=lr_sib",
        "objectives.phrase.attention=after_dropout",
    ),
    "tree.v1": ("objectives.tree.tree_topk=released",),
}


def condition(name: str, *objectives: str, sla: bool = False) -> Recipe:
    """Masked language modelling with objectives beside it, all with the weight 1."""
    return Recipe(
        name=f"microbert-{name}",
        data=DataOptions(
            dataset="silver",
            lang="wo",
            joint_root=False,
            separator_edge="none",
            max_length=512,
            bucket=False,
            gold="gold",
            samplers=tuple(_SAMPLERS[one] for one in objectives if one in _SAMPLERS),
        ),
        model=MicroBertOptions(sla=sla),
        task=options.MlmOptions(output_bias=False),
        objectives=tuple(section_from_json("objectives", {"name": one}) for one in objectives),
        training=_TRAINING,
        optimizers=_EVERYTHING_DECAYS,
    )


def as_released(name: str, *objectives: str, sla: bool = False) -> Recipe:
    """A `condition` as ``configs/sgcl.jsonnet`` of lr-sib trains it, with tags and the parser."""
    own = ("xpos_tagging.v1", "dependency.v1", *objectives)
    samplers = [_RELEASED_SAMPLERS[one] for one in own if one in _RELEASED_SAMPLERS]
    settings = [f"data.samplers={','.join(samplers)}", "model.window=as_released"]
    settings += [setting for one in own for setting in _RELEASED_OBJECTIVES[one]]
    return variant(condition(name, *own, sla=sla), "as-released", *settings)


def mlm() -> Recipe:
    """Masked language modelling alone."""
    return condition("mlm")


def mlm_phrase() -> Recipe:
    """Masked language modelling, and the contrast of phrases."""
    return condition("mlm-phrase", "phrase.v1")


def mlm_tree() -> Recipe:
    """Masked language modelling, and the contrast of trees."""
    return condition("mlm-tree", "tree.v1")


def mlm_phrase_tree() -> Recipe:
    """Masked language modelling, and the contrasts of phrases and trees."""
    return condition("mlm-phrase-tree", "phrase.v1", "tree.v1")


def mlm_phrase_tree_sla() -> Recipe:
    """Masked language modelling, both contrasts, and local attention."""
    return condition("mlm-phrase-tree-sla", "phrase.v1", "tree.v1", sla=True)


def mlm_xpos() -> Recipe:
    """Masked language modelling, and the tags of the treebank."""
    return condition("mlm-xpos", "xpos_tagging.v1")


def mlm_xpos_phrase() -> Recipe:
    """Masked language modelling, tags, and the contrast of phrases."""
    return condition("mlm-xpos-phrase", "xpos_tagging.v1", "phrase.v1")


def mlm_xpos_tree() -> Recipe:
    """Masked language modelling, tags, and the contrast of trees."""
    return condition("mlm-xpos-tree", "xpos_tagging.v1", "tree.v1")


def mlm_xpos_phrase_tree() -> Recipe:
    """Masked language modelling, tags, and the contrasts of phrases and trees."""
    return condition("mlm-xpos-phrase-tree", "xpos_tagging.v1", "phrase.v1", "tree.v1")


def mlm_xpos_phrase_tree_sla() -> Recipe:
    """Masked language modelling, tags, both contrasts, and local attention."""
    objectives = ("xpos_tagging.v1", "phrase.v1", "tree.v1")
    return condition("mlm-xpos-phrase-tree-sla", *objectives, sla=True)


def mlm_xpos_parser() -> Recipe:
    """Masked language modelling, tags, and the parser of MicroBERT (Gessler and Zeldes 2022)."""
    return condition("mlm-xpos-parser", "xpos_tagging.v1", "dependency.v1")


def mlm_xpos_as_released() -> Recipe:
    """Masked language modelling, all tags and the parser, as released."""
    return as_released("mlm-xpos")


def mlm_xpos_phrase_as_released() -> Recipe:
    """The same with the contrast of phrases as released, which pushes them apart."""
    return as_released("mlm-xpos-phrase", "phrase.v1")


def mlm_xpos_tree_as_released() -> Recipe:
    """The same with the contrast of trees as released."""
    return as_released("mlm-xpos-tree", "tree.v1")


def mlm_xpos_phrase_tree_as_released() -> Recipe:
    """The same with both contrasts as released."""
    return as_released("mlm-xpos-phrase-tree", "phrase.v1", "tree.v1")


def mlm_xpos_phrase_tree_sla_as_released() -> Recipe:
    """The same with both contrasts, and local attention without the right neighbour."""
    return as_released("mlm-xpos-phrase-tree-sla", "phrase.v1", "tree.v1", sla=True)


_CONDITIONS: Final[dict[str, Callable[[], Recipe]]] = {
    "mlm": mlm,
    "mlm-phrase": mlm_phrase,
    "mlm-tree": mlm_tree,
    "mlm-phrase-tree": mlm_phrase_tree,
    "mlm-phrase-tree-sla": mlm_phrase_tree_sla,
    "mlm-xpos": mlm_xpos,
    "mlm-xpos-phrase": mlm_xpos_phrase,
    "mlm-xpos-tree": mlm_xpos_tree,
    "mlm-xpos-phrase-tree": mlm_xpos_phrase_tree,
    "mlm-xpos-phrase-tree-sla": mlm_xpos_phrase_tree_sla,
    "mlm-xpos-parser": mlm_xpos_parser,
    "mlm-xpos-as-released": mlm_xpos_as_released,
    "mlm-xpos-phrase-as-released": mlm_xpos_phrase_as_released,
    "mlm-xpos-tree-as-released": mlm_xpos_tree_as_released,
    "mlm-xpos-phrase-tree-as-released": mlm_xpos_phrase_tree_as_released,
    "mlm-xpos-phrase-tree-sla-as-released": mlm_xpos_phrase_tree_sla_as_released,
}

for _name, _make in _CONDITIONS.items():
    RECIPES.add(f"microbert-{_name}", _make)
