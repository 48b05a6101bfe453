"""The structural probes on the graph encoder's states, with one weight: the paper's alpha."""

from __future__ import annotations

from trainer.options import ObjectiveOptions, TreeDepthOptions, TreeDistanceOptions


def probes(weight: float, rank: int = 64) -> tuple[ObjectiveOptions, ...]:
    """Both probes. Those of weight 0 are not built; settings can give them one."""
    return (
        TreeDistanceOptions(weight=weight, states="syntax", rank=rank),
        TreeDepthOptions(weight=weight, states="syntax", rank=rank),
    )


def weighing(weight: float) -> tuple[str, str]:
    return (f"objectives.tree_distance.weight={weight}", f"objectives.tree_depth.weight={weight}")
