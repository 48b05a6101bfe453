"""Objectives: losses beside the task's, each with a weight of its own in the recipe.

An objective is a module over what an encoder gives (`trainer.objectives.base.Objective`), and a
dataclass of options. To add one, write both and add a line here; the contract test runs over the
registry. Nothing here imports torch.
"""

from trainer.objectives.base import OBJECTIVES, Objective, ObjectiveEntry
from trainer.objectives.options import (
    MlmObjectiveOptions,
    PhraseContrastOptions,
    TreeContrastOptions,
    TreeDepthOptions,
    TreeDistanceOptions,
)
from trainer.switches import Switch

_PHRASE_SWITCHES = (
    Switch(
        "objectives.phrase.phrase_loss",
        "`as_published`: InfoNCE, similar is what attends alike (-JSD)",
        "`synclm`: the negated InfoNCE of +JSD; `lr_sib`: InfoNCE of +JSD / L",
    ),
    Switch(
        "objectives.phrase.attention",
        "`before_dropout`: attention weights that sum to 1",
        "`after_dropout`: those that meet the values (both releases)",
    ),
)
_TREE_SWITCHES = (
    Switch(
        "objectives.tree.tree_root",
        "`out`: the root of a tree is not among its pieces",
        "`in`: it is (SynCLM's release)",
    ),
    Switch(
        "objectives.tree.projection",
        "false: the states are compared",
        "true: two linear maps of them are (SynCLM's release)",
    ),
    Switch(
        "objectives.tree.tree_topk",
        "`masked`: the three hardest of the real negatives count",
        "`released`: empty cells can take their places, as if of similarity 0 (lr-sib)",
    ),
)

OBJECTIVES.add(
    "tree_distance.v1",
    ObjectiveEntry(TreeDistanceOptions, "trainer.objectives.tree_distance:TreeDistance"),
)
OBJECTIVES.add(
    "tree_depth.v1", ObjectiveEntry(TreeDepthOptions, "trainer.objectives.tree_depth:TreeDepth")
)
OBJECTIVES.add(
    "phrase.v1",
    ObjectiveEntry(
        PhraseContrastOptions, "trainer.objectives.phrase:PhraseContrast", _PHRASE_SWITCHES
    ),
)
OBJECTIVES.add(
    "tree.v1",
    ObjectiveEntry(TreeContrastOptions, "trainer.objectives.tree:TreeContrast", _TREE_SWITCHES),
)

OBJECTIVES.add("mlm.v1", ObjectiveEntry(MlmObjectiveOptions, "trainer.objectives.mlm:MaskedPieces"))

__all__ = [
    "OBJECTIVES",
    "MlmObjectiveOptions",
    "Objective",
    "ObjectiveEntry",
    "PhraseContrastOptions",
    "TreeContrastOptions",
    "TreeDepthOptions",
    "TreeDistanceOptions",
]
