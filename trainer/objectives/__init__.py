"""Objectives: losses beside the task's, each with a weight of its own in the recipe.

An objective is a module over what an encoder gives (`trainer.objectives.base.Objective`), and a
dataclass of options. To add one, write both and add a line here; the contract test runs over the
registry. Nothing here imports torch.
"""

from trainer.objectives.base import OBJECTIVES, Objective, ObjectiveEntry
from trainer.objectives.options import (
    MlmObjectiveOptions,
    TreeDepthOptions,
    TreeDistanceOptions,
)

OBJECTIVES.add(
    "tree_distance.v1",
    ObjectiveEntry(TreeDistanceOptions, "trainer.objectives.tree_distance:TreeDistance"),
)
OBJECTIVES.add(
    "tree_depth.v1", ObjectiveEntry(TreeDepthOptions, "trainer.objectives.tree_depth:TreeDepth")
)
OBJECTIVES.add("mlm.v1", ObjectiveEntry(MlmObjectiveOptions, "trainer.objectives.mlm:MaskedPieces"))

__all__ = [
    "OBJECTIVES",
    "MlmObjectiveOptions",
    "Objective",
    "ObjectiveEntry",
    "TreeDepthOptions",
    "TreeDistanceOptions",
]
