"""Objectives: losses beside the task's, each with a weight of its own in the recipe.

To add one, write a module (`trainer.objectives.base.Objective`) and a dataclass of options, and
add a line here; the contract test runs over the registry. Nothing here imports torch.
"""

from dataclasses import dataclass
from typing import Final

from syntax.registry import Registry
from syntax.variant import Switch
from trainer.objectives.adversary_options import AdversaryOptions
from trainer.objectives.options import (
    DependencyObjectiveOptions,
    MlmObjectiveOptions,
    PhraseContrastOptions,
    TreeContrastOptions,
    TreeDepthOptions,
    TreeDistanceOptions,
    UposTaggingOptions,
    XposTaggingOptions,
)
from trainer.objectives.shown_options import (
    ParseHeadOptions,
    TreePlantingOptions,
    TreeRegOptions,
)
from trainer.options.objective import ObjectiveOptions


@dataclass(frozen=True, slots=True)
class ObjectiveEntry:
    """An objective; its module is imported when it is used, so recipes are listed without torch."""

    options: type[ObjectiveOptions]
    module: str
    switches: tuple[Switch, ...] = ()


OBJECTIVES: Final[Registry[ObjectiveEntry]] = Registry("objective")

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
_PARSER_SWITCHES = (
    Switch(
        "objectives.dependency.rows",
        "the words of each sentence have a head to learn",
        "and [SEP], in each sentence that is not the longest of its batch: the code drops the last "
        "column of the batch",
    ),
    Switch(
        "objectives.dependency.average",
        "the loss is a mean over the words of gold trees",
        "it is divided by the number of gold sentences times that of all words of the batch",
    ),
)
_TREE_REG_SWITCH = Switch(
    "objectives.tree_reg.average",
    "the losses of a sentence's brackets are added",
    "their mean is taken, so that a long sentence counts as much as a short one",
)
_ADVERSARY_SWITCHES = (
    Switch(
        "objectives.adversary.gan_loss",
        "the encoder's loss is the discriminator's with the sign turned, on both languages",
        "the labels are soft, and the encoder learns by the auxiliary language alone that "
        "it is to look like the source",
    ),
    Switch(
        "objectives.adversary.positions",
        "the discriminator reads words",
        "and special tokens, later pieces and padding",
    ),
    Switch(
        "objectives.adversary.residual",
        "a block of the strong discriminator is x + .3 conv5(relu(conv5(relu(x))))",
        "it is relu(x) + the same: its ReLU works in place",
    ),
)
_TAGGING_SWITCH = Switch(
    "objectives.xpos_tagging.tags",
    "the tags of gold trees are learned",
    "and those that a parser gave",
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
OBJECTIVES.add(
    "dependency.v1",
    ObjectiveEntry(
        DependencyObjectiveOptions,
        "trainer.objectives.dependency:DependencyObjective",
        _PARSER_SWITCHES,
    ),
)
OBJECTIVES.add(
    "xpos_tagging.v1",
    ObjectiveEntry(
        XposTaggingOptions, "trainer.objectives.tagging:WordTagging", (_TAGGING_SWITCH,)
    ),
)
OBJECTIVES.add(
    "upos_tagging.v1",
    ObjectiveEntry(UposTaggingOptions, "trainer.objectives.tagging:WordTagging"),
)
OBJECTIVES.add(
    "tree_reg.v1",
    ObjectiveEntry(TreeRegOptions, "trainer.objectives.tree_reg:TreeReg", (_TREE_REG_SWITCH,)),
)
OBJECTIVES.add(
    "tree_planting.v1",
    ObjectiveEntry(TreePlantingOptions, "trainer.objectives.tree_planting:TreePlanting"),
)
OBJECTIVES.add(
    "parse_head.v1", ObjectiveEntry(ParseHeadOptions, "trainer.objectives.parse_head:ParseHead")
)
OBJECTIVES.add(
    "adversary.v1",
    ObjectiveEntry(
        AdversaryOptions, "trainer.objectives.adversary:LanguageAdversary", _ADVERSARY_SWITCHES
    ),
)

__all__ = [
    "OBJECTIVES",
    "AdversaryOptions",
    "DependencyObjectiveOptions",
    "MlmObjectiveOptions",
    "ObjectiveEntry",
    "ParseHeadOptions",
    "PhraseContrastOptions",
    "TreeContrastOptions",
    "TreeDepthOptions",
    "TreeDistanceOptions",
    "TreePlantingOptions",
    "TreeRegOptions",
    "UposTaggingOptions",
    "XposTaggingOptions",
]
