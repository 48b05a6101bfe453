"""Recipes of releases in which the structural probes were options of the model."""

from __future__ import annotations

from typing import Any, Final

MOVED: Final = {
    "structure_weight": "objectives.tree_distance.weight and objectives.tree_depth.weight",
    "probe_rank": "objectives.tree_distance.rank and objectives.tree_depth.rank",
    "probe_target": "objectives.tree_distance.target",
    "objectives": "objectives",
}
"""Options of the model in earlier releases, and the options in their place."""


def with_objectives(recipe: dict[str, Any]) -> dict[str, Any]:
    """The recipe with its probes among its objectives, both with the weight of their sum.

    >>> model = {"name": "syntax_bert.v1", "structure_weight": 0.5, "objectives": ["tree_depth.v1"]}
    >>> found = with_objectives({"model": model})
    >>> found["model"], found["objectives"][0]["name"], found["objectives"][0]["weight"]
    ({'name': 'syntax_bert.v1'}, 'tree_depth.v1', 0.5)
    """
    model = recipe["model"]
    if not any(name in model for name in MOVED):
        return recipe
    alone = model["name"] == "syntax_gat.v1"
    probes = []
    for name in model.get("objectives", ("tree_distance.v1", "tree_depth.v1")):
        probe: dict[str, Any] = {
            "name": name,
            "weight": model.get("structure_weight", 1.0 if alone else 0.0),
            "states": "syntax",
            "rank": model.get("probe_rank", 64),
        }
        if name == "tree_distance.v1":
            probe["target"] = model.get("probe_target", "as_published")
        probes.append(probe)
    kept = {name: value for name, value in model.items() if name not in MOVED}
    return {**recipe, "model": kept, "objectives": [*recipe.get("objectives", ()), *probes]}
