"""The pre-training runs of MicroBERT: the ten conditions of Gessler and Schneider 2023, table 2.

An eleventh has the parser of Gessler and Zeldes 2022, which the released configuration adds to all.

Common to all: batches of 32, eight of which make a step, 62,500 steps of AdamW at 3e-3 with betas
0.9 and 0.98, epsilon 1e-6 and a decay of 0.01 of every weight, a cosine after 10,000 steps of
warm-up, no clipping, and the last weights. Every ninth example of an epoch is of the treebank
``data.gold``. For a language, set ``data.lang`` and the names of the datasets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trainer import options
from trainer.options import (
    DataOptions,
    GroupOptions,
    MicroBertOptions,
    ObjectiveOptions,
    OptimizerOptions,
    Recipe,
    TrainingOptions,
)
from trainer.options.settings import section_from_json
from trainer.recipes.base import RECIPES

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

_SAMPLERS: Final = {"phrase.v1": "phrase(way=lr_sib)", "tree.v1": "tree(way=lr_sib)"}


def condition(name: str, *objectives: str, sla: bool = False) -> Recipe:
    """Masked language modelling with objectives beside it, all with the weight 1.

    Args:
        name: Of the condition.
        objectives: Names of the objectives.
        sla: Whether the layers attend locally too.
    """
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
        objectives=tuple(map(_objective, objectives)),
        training=_TRAINING,
        optimizers=_EVERYTHING_DECAYS,
    )


def _objective(name: str) -> ObjectiveOptions:
    found: ObjectiveOptions = section_from_json("objectives", {"name": name})
    return found


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
}

for _name, _make in _CONDITIONS.items():
    RECIPES.add(f"microbert-{_name}", _make)
