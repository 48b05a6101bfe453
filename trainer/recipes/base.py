"""The registry of recipes, and what several of them are made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from syntax.registry import Registry
from trainer.options import (
    DataOptions,
    ObjectiveOptions,
    Recipe,
    TreeDepthOptions,
    TreeDistanceOptions,
)
from trainer.options.settings import with_settings

RECIPES: Registry[Callable[[], Recipe]] = Registry("recipe")
"""Every run by name. A recipe is a function, so that one can be made from another."""


def trees_of_words(dataset: str, **options: Any) -> DataOptions:
    """Data whose pieces stand where their word does, in trees that nothing joins."""
    return DataOptions(
        dataset=dataset, policy="broadcast", joint_root=False, separator_edge="none", **options
    )


def whole_sentences(dataset: str) -> DataOptions:
    """Data of words: the first piece of each stands for it, and nothing is cut off."""
    return DataOptions(
        dataset=dataset,
        max_length=4096,
        truncation="none",
        policy="none",
        joint_root=False,
        separator_edge="none",
    )


def probes(weight: float, rank: int = 64) -> tuple[ObjectiveOptions, ...]:
    """Both structural probes on the states of Syntax-MBERT's graph encoder, of the weight alpha.

    Those of weight 0 are not built; settings can give them one.
    """
    return (
        TreeDistanceOptions(weight=weight, states="syntax", rank=rank),
        TreeDepthOptions(weight=weight, states="syntax", rank=rank),
    )


def variant(recipe: Recipe, suffix: str, *settings: str) -> Recipe:
    return replace(with_settings(recipe, settings), name=f"{recipe.name}-{suffix}")
