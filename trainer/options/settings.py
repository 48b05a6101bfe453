"""Changing a recipe from the command line, and reading one back from a result."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from reprlib import repr as shown
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from syntax.errors import SpecError
from syntax.lists import listed
from syntax.registry import unknown_name
from syntax.strict_json import parse_json
from trainer.options.data import DataOptions
from trainer.options.models import MODEL_OPTIONS, ModelOptions
from trainer.options.recipe import Recipe
from trainer.options.task import TaskOptions
from trainer.options.training import TrainingOptions

FIXED: Final[Mapping[str, type[Any]]] = {"data": DataOptions, "training": TrainingOptions}
"""Sections whose options are the same in every recipe."""

COMMON: Final[Mapping[str, type[Any]]] = {"model": ModelOptions, "task": TaskOptions}
"""What all options have of a section whose ``name`` says which further options there are."""

SECTIONS: Final = ("data", "model", "task", "training")


def options(recipe: Recipe) -> dict[str, Any]:
    """Every option of a recipe by its dotted name, with its type."""
    return {
        f"{section}.{name}": kind
        for section in SECTIONS
        for name, kind in get_type_hints(type(getattr(recipe, section))).items()
    }


def with_settings(recipe: Recipe, settings: Iterable[str]) -> Recipe:
    """The recipe with ``key=value`` settings applied, in order.

    A key is dotted (``model.max_distance``), or bare where only one section has it. A value is
    JSON (``4``, ``true``, ``null``, ``[0, 1]``), plain text, or a list as ``0,1``. ``model.name``
    and ``task.name`` change the options that there are; those that all models have keep their
    values.

    Raises:
        SpecError: A setting has no ``=``, or its value does not fit the option.
        UnknownNameError: No such option.
    """
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise SpecError(f"the setting {setting!r} has no '='; give `key=value`")
        recipe = _with_option(recipe, _dotted(recipe, key.strip()), text.strip())
    return recipe


def recipe_from_json(content: Mapping[str, Any]) -> Recipe:
    """The recipe that `Recipe.to_json` wrote.

    Raises:
        SpecError: A section is missing, or a value does not fit its option.
        UnknownNameError: The content has an option that this release does not know.
    """
    try:
        sections = {name: section_from_json(name, content[name]) for name in SECTIONS}
        return Recipe(name=content["name"], **sections)
    except (KeyError, TypeError) as error:
        raise SpecError(f"this is no recipe: {error} is missing or malformed") from error


def section_from_json(section: str, content: Mapping[str, Any]) -> Any:
    """The options of one section, as `dataclasses.asdict` wrote them.

    Raises:
        SpecError: A value does not fit its option.
        UnknownNameError: No such option, or no such model or task.
    """
    kind = _options_of(section, content["name"]) if section in COMMON else FIXED[section]
    hints = get_type_hints(kind)
    for name in content:
        if name not in hints:
            raise unknown_name("recipe option", f"{section}.{name}", _dotted_names(section, hints))
    return kind(**{name: _fit(f"{section}.{name}", hints[name], content[name]) for name in content})


def described(recipe: Recipe) -> list[tuple[str, str, Any]]:
    """Every option of a recipe: dotted name, what it may be, its value."""
    return [
        (key, _described(kind), getattr(getattr(recipe, section), name))
        for key, kind in options(recipe).items()
        for section, _, name in [key.partition(".")]
    ]


def _with_option(recipe: Recipe, key: str, text: str) -> Recipe:
    section, _, name = key.partition(".")
    value = _fit(key, options(recipe)[key], _parsed(text))
    before = getattr(recipe, section)
    if name == "name" and section in COMMON:
        return replace(recipe, **{section: _renamed(section, before, value)})
    return replace(recipe, **{section: replace(before, **{name: value})})


def _renamed(section: str, before: Any, name: str) -> Any:
    """The options of another model or task; those that all of them have keep their values."""
    shared = [field.name for field in fields(COMMON[section]) if field.name != "name"]
    kept = {field: getattr(before, field) for field in shared}
    return _options_of(section, name)(name=name, **kept)


def _options_of(section: str, name: str) -> type[Any]:
    """The options of a model or task, by its name."""
    if section == "model":
        return MODEL_OPTIONS[name]
    from trainer.tasks import TASKS  # imports torch

    return TASKS[name].options


def _dotted(recipe: Recipe, key: str) -> str:
    known = options(recipe)
    matches = [name for name in known if key == name or key == name.partition(".")[2]]
    if len(matches) > 1:
        raise SpecError(f"the option {key!r} is ambiguous: {', '.join(matches)}")
    if not matches:
        bare = (name.partition(".")[2] for name in known)
        raise unknown_name("recipe option", key, known if "." in key else bare)
    return matches[0]


def _dotted_names(section: str, names: Iterable[str]) -> list[str]:
    return [f"{section}.{name}" for name in names]


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except json.JSONDecodeError:
        return text


def _fit(key: str, kind: Any, value: Any) -> Any:
    """The value as the option's type wants it; JSON has no tuples, and writes 1.0 as 1."""
    for accepted in _alternatives(kind):
        if get_origin(accepted) is Literal and value in get_args(accepted):
            return value
        if get_origin(accepted) is tuple and value is not None:
            return tuple(_fit(key, get_args(accepted)[0], item) for item in _items(value))
        if accepted is float and _is_number(value) and math.isfinite(value):
            return float(value)
        if accepted is str and _is_number(value):
            return str(value)
        if accepted is not float and isinstance(accepted, type) and type(value) is accepted:
            return value
    raise SpecError(f"{key} cannot be {shown(value)}; it is {_described(kind)}")


def _items(value: Any) -> list[Any]:
    """The items of a list: of JSON's, or as people write one, ``1,2`` or a single item."""
    if isinstance(value, str):
        return [_parsed(item) for item in listed(value or None)]
    return list(value) if isinstance(value, list | tuple) else [value]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    union = get_origin(kind) in (Union, types.UnionType)
    return get_args(kind) if union else (kind,)


def _described(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(repr, get_args(kind)))
    if len(_alternatives(kind)) > 1:
        return " or ".join(_described(one) for one in _alternatives(kind))
    if kind is type(None):
        return "null"
    if get_origin(kind) is tuple:
        return f"list of {_described(get_args(kind)[0])}"
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
