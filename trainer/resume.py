"""What a resumed run may have otherwise than the run that it goes on with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from syntax.errors import SpecError
from trainer.options import DataOptions, Recipe
from trainer.options.settings import described, recipe_from_json

FREE: Final = frozenset(
    f"training.{name}"
    for name in (
        *("accumulation", "epochs", "max_steps", "patience", "threads", "compile"),
        "gradient_checkpointing",
        *("evaluate_every", "evaluation_batch_size", "checkpoint_every", "log_every"),
    )
)
"""Options that may change: how long a run goes on, what a step gathers on another number of
processes, and what does not reach the weights. A result records each change and its step."""


def continued(recipe: Recipe, saved: Mapping[str, Any]) -> Recipe:
    """The recipe of a run that goes on, on the tokenizer and version that it began with.

    Args:
        recipe: What is asked for.
        saved: Content of the checkpoint's recipe.

    Raises:
        SpecError: It differs from the checkpoint's in what is not `FREE`.
    """
    before = recipe_from_json(saved)
    recipe = replace(recipe, data=settled(recipe.data, before.data))
    for key, (was, now) in changes(recipe, saved).items():
        if key not in FREE:
            raise SpecError(
                f"the checkpoint was made with {key}={was}, and the recipe says {now}; "
                "resume with the same, or train into another folder"
            )
    return recipe


def changes(recipe: Recipe, saved: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The options of a recipe that a saved one has otherwise: what they were, what they are."""
    ours = _values(recipe)
    theirs = _values(recipe_from_json(saved))
    return {key: [was, ours.get(key)] for key, was in theirs.items() if was != ours.get(key)}


def settled(data: DataOptions, before: DataOptions) -> DataOptions:
    """Data options, with the tokenizer and version of earlier ones where they name none."""
    return replace(
        data,
        tokenizer=data.tokenizer or before.tokenizer,
        version=before.version if data.version is None else data.version,
    )


def _values(recipe: Recipe) -> dict[str, Any]:
    return {key: value for key, _, value in described(recipe)}
