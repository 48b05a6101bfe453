"""Options that a resumed run may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from syntax.errors import SpecError
from trainer.options import DataOptions, ObjectiveOptions, Recipe, StreamOptions
from trainer.options.settings import described, recipe_from_json

FREE: Final = frozenset(
    f"training.{name}"
    for name in (
        *("accumulation", "epochs", "max_steps", "patience", "threads", "compile"),
        "gradient_checkpointing",
        *("evaluate_every", "evaluation_batch_size", "checkpoint_every", "log_every"),
    )
)
"""Options that may change: how long a run lasts, how many batches a step has (for another number of
processes), and those that do not affect the weights. A result records each change and its step."""


def continued(recipe: Recipe, saved: Mapping[str, Any]) -> Recipe:
    """The recipe with the tokenizers and versions of ``saved``; only `FREE` options may differ."""
    recipe = settled(recipe, recipe_from_json(saved))
    for key, (was, now) in changes(recipe, saved).items():
        if key not in FREE:
            raise SpecError(
                f"the checkpoint was made with {key}={was}, and the recipe says {now}; "
                "resume with the same, or train into another folder"
            )
    return recipe


def changes(recipe: Recipe, saved: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Values of the options that differ in a saved recipe and here; None where one has none."""
    ours, theirs = _values(recipe), _values(recipe_from_json(saved))
    return {
        key: [theirs.get(key), ours.get(key)]
        for key in {**theirs, **ours}
        if theirs.get(key) != ours.get(key) or (key in theirs) != (key in ours)
    }


def settled(recipe: Recipe, before: Recipe) -> Recipe:
    """The recipe with the tokenizers, versions and names of classes that an earlier run found."""
    earlier = {stream.name: stream for stream in before.streams}
    powers = recipe.training.share_exponent is not None
    streams = tuple(
        _settled_stream(one, earlier.get(one.name, one), powers) for one in recipe.streams
    )
    return replace(
        recipe,
        data=_settled_data(recipe.data, before.data),
        model=recipe.model.settled(before.model),
        task=recipe.task.settled(before.task),
        objectives=_settled_objectives(recipe.objectives, before.objectives),
        streams=streams,
    )


def _settled_stream(stream: StreamOptions, before: StreamOptions, powers: bool) -> StreamOptions:
    task, from_sizes = stream.task, stream.joins == "in_turn" or (powers and not stream.joins)
    if task is not None and before.task is not None:
        task = task.settled(before.task)
    return replace(
        stream,
        share=before.share if from_sizes else stream.share,
        data=_settled_data(stream.data, before.data),
        task=task,
        objectives=_settled_objectives(stream.objectives, before.objectives),
    )


def _settled_objectives(
    objectives: tuple[ObjectiveOptions, ...], before: tuple[ObjectiveOptions, ...]
) -> tuple[ObjectiveOptions, ...]:
    earlier = {one.name: one for one in before}
    return tuple(one.settled(earlier.get(one.name, one)) for one in objectives)


def _settled_data(data: DataOptions, before: DataOptions) -> DataOptions:
    return replace(
        data,
        tokenizer=data.tokenizer or before.tokenizer,
        version=before.version if data.version is None else data.version,
        gold_version=before.gold_version if data.gold_version is None else data.gold_version,
        treebank_version=before.treebank_version
        if data.treebank_version is None
        else data.treebank_version,
    )


def _values(recipe: Recipe) -> dict[str, Any]:
    return {key: value for key, _, value in described(recipe)}
