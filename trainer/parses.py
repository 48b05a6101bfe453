"""The parses of texts beside their features, for tasks and objectives that read whole trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from syntax.batches.words import word_layout
from syntax.errors import SpecError
from trainer.options import Recipe

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore


def reads_parses(recipe: Recipe) -> bool:
    return recipe.task.reads_parses() or any(
        one.reads_parses() for one in recipe.objectives if one.is_active(recipe.model.use_syntax)
    )


def with_parses(store: FeatureStore, dataset: FeatureDataset, recipe: Recipe) -> FeatureDataset:
    from featurestore import ParsedDataset

    if not reads_parses(recipe) or isinstance(dataset, ParsedDataset):
        return dataset
    if recipe.model.reads_words:
        raise SpecError(
            f"{recipe.model.name} reads the states of words, and {recipe.task.name} or an "
            "objective finds words among pieces; take a model that reads pieces"
        )
    return ParsedDataset(store, dataset)


def parse_options(recipe: Recipe) -> dict[str, Any]:
    return {"offsets": True} if reads_parses(recipe) else {}


def with_targets(recipe: Recipe, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    found = dict(recipe.task.arrays(arrays))
    if reads_parses(recipe) and "word_layout" not in found:
        found["word_layout"] = word_layout(arrays)
    for one in recipe.objectives:
        if one.is_active(recipe.model.use_syntax):
            found.update(one.targets(found))
    return found


def fitted(recipe: Recipe, dataset: FeatureDataset) -> Recipe:
    """The recipe with what it leaves to the training examples, such as names of relations."""
    objectives = tuple(one.fitted(dataset) for one in recipe.objectives)
    return replace(recipe, task=recipe.task.fitted(dataset), objectives=objectives)
