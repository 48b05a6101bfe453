"""Changing a recipe from the command line, and reading one back from a result."""

from __future__ import annotations

import functools
import json
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from reprlib import repr as shown
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from syntax.errors import ParsebankError, SpecError, UnknownNameError
from syntax.lists import listed
from syntax.registry import unknown_name
from syntax.strict_json import parse_json
from trainer.objectives import OBJECTIVES
from trainer.options.data import DataOptions
from trainer.options.model import ModelOptions
from trainer.options.objective import ObjectiveOptions
from trainer.options.recipe import Recipe
from trainer.options.task import TaskOptions
from trainer.options.training import TrainingOptions
from trainer.systems import SYSTEMS

SECTIONS: Final[Mapping[str, type[Any]]] = {
    "data": DataOptions,
    "model": ModelOptions,
    "task": TaskOptions,
    "training": TrainingOptions,
}
"""The parts of a recipe that every recipe has; their options need no prefix where only one has
them."""

NAMED: Final[tuple[type[Any], ...]] = (ModelOptions, TaskOptions, ObjectiveOptions)
"""Options whose ``name`` says which further options there are."""


def options_of(base: type[Any], name: str) -> type[Any]:
    if base is TaskOptions:
        from trainer.tasks import TASKS

        return TASKS[name].options
    return SYSTEMS[name].options if base is ModelOptions else OBJECTIVES[name].options


class Option(NamedTuple):
    """Type and value of one option of a recipe."""

    kind: Any
    value: Any

    @property
    def nested(self) -> bool:
        """True for what is made of options: a section, or a list of named entries."""
        lists = (one for one in _alternatives(self.kind) if get_origin(one) is tuple)
        return is_dataclass(self.value) or any(is_dataclass(get_args(one)[0]) for one in lists)


def options(recipe: Recipe) -> dict[str, Any]:
    return {key: option.kind for key, option in _walk(recipe) if not option.nested}


def with_settings(recipe: Recipe, settings: Iterable[str]) -> Recipe:
    """The recipe with ``key=value`` settings applied, in order; several mistakes are one error.

    A key is dotted (``model.max_distance``), or bare where only one section has it. An entry of a
    list goes by its name, without the version: ``objectives.tree_distance.weight``,
    ``streams.gold.data.lang``. What streams share of an objective, all but its weight, changes in
    all of them. A value is JSON (``4``, ``true``, ``null``, ``[0, 1]``), plain text, or a list as
    ``0,1``; a list of entries is JSON (``objectives=[{"name": "tree_depth.v1"}]``). ``model.name``
    and ``task.name`` change the options that there are; shared ones keep their values. Objectives
    that read syntax states go with a model that has none.
    """
    faults: list[ParsebankError] = []
    for setting in settings:
        try:
            recipe = _with_setting(recipe, setting)
        except ParsebankError as error:
            faults.append(error)
            if setting.partition("=")[0].strip().endswith(".name"):
                break  # which options there are depends on the name
    raise_all(faults)
    return recipe


def setting_of(key: str, value: Any) -> str:
    """A setting as `with_settings` takes it, of a value as plain JSON."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"


def _with_setting(recipe: Recipe, setting: str) -> Recipe:
    key, equals, text = setting.partition("=")
    if not equals:
        raise SpecError(f"the setting {setting!r} has no '='; give `key=value`")
    key = _dotted(recipe, key.strip())
    recipe = _with_shared(_changed(recipe, key, key, _parsed(text.strip())), key)
    if key == "model.name" and not recipe.model.has_syntax_states:
        kept = tuple(one for one in recipe.objectives if not one.reads_syntax_states())
        recipe = replace(recipe, objectives=kept)
    return recipe


def recipe_from_json(content: Mapping[str, Any]) -> Recipe:
    try:
        for section in SECTIONS:
            _ = content[section].keys()
        recipe: Recipe = _built("", Recipe, dict(content))
    except (KeyError, TypeError, AttributeError) as error:
        raise SpecError(f"this is not a recipe: {error} is missing or malformed") from error
    return recipe


def section_from_json(section: str, content: Mapping[str, Any]) -> Any:
    return _built(section, {**SECTIONS, "objectives": ObjectiveOptions}[section], content)


def described(recipe: Recipe) -> list[tuple[str, str, Any]]:
    return [
        (key, _described(option.kind), option.value)
        for key, option in _walk(recipe)
        if not option.nested
    ]


_kinds: Final[Callable[[Any], dict[str, Any]]] = functools.cache(get_type_hints)


def _walk(holder: Any, prefix: str = "") -> Iterator[tuple[str, Option]]:
    for name, kind in _kinds(type(holder)).items():
        key, value = f"{prefix}{name}", getattr(holder, name)
        if key == "name":
            continue  # of the recipe itself
        yield key, (option := Option(kind, value))
        if is_dataclass(value):
            yield from _walk(value, f"{key}.")
        elif option.nested:
            for entry in value:
                yield from _walk(entry, f"{key}.{_short(entry.name)}.")


def _short(name: str) -> str:
    return re.sub(r"\.v[0-9]+$", "", name)


def _changed(holder: Any, key: str, path: str, value: Any) -> Any:
    name, _, rest = path.partition(".")
    before = getattr(holder, name)
    if not rest:
        fitting = _fit(key, _kinds(type(holder))[name], value)
        base = next((base for base in NAMED if isinstance(holder, base)), None)
        if name == "name" and base is not None:
            shared = [field.name for field in fields(base) if field.name != "name"]
            return options_of(base, fitting)(
                name=fitting, **{field: getattr(holder, field) for field in shared}
            )
        return replace(holder, **{name: fitting})
    if not isinstance(before, tuple):
        return replace(holder, **{name: _changed(before, key, rest, value)})
    entry, _, rest = rest.partition(".")
    entries = [
        _changed(one, key, rest, value) if _short(one.name) == entry else one for one in before
    ]
    return replace(holder, **{name: tuple(entries)})


def _with_shared(recipe: Recipe, key: str) -> Recipe:
    """The recipe with the objective that ``key`` changes in the streams that share it, too."""
    section, _, path = key.partition(".")
    name, _, option = path.partition(".")
    if section != "objectives" or option in ("", "weight"):
        return recipe
    changed = {one.name: one for one in recipe.objectives if _short(one.name) == name}
    streams = tuple(
        replace(
            stream,
            objectives=tuple(
                replace(changed.get(one.name, one), weight=one.weight) for one in stream.objectives
            ),
        )
        for stream in recipe.streams
    )
    return replace(recipe, streams=streams)


def _dotted(recipe: Recipe, key: str) -> str:
    known = dict(_walk(recipe))
    if key in known and key not in SECTIONS:
        return key
    bare = {
        name: name.partition(".")[2] for name in options(recipe) if name.split(".")[0] in SECTIONS
    }
    matches = [name for name, short in bare.items() if short == key]
    if len(matches) > 1:
        raise SpecError(f"the option {key!r} is ambiguous: {', '.join(matches)}")
    if not matches:
        _check_objective_is_listed(recipe, key)
        raise unknown_name("recipe option", key, known if "." in key else bare.values())
    return matches[0]


def _check_objective_is_listed(recipe: Recipe, key: str) -> None:
    found = re.match(r"objectives\.(\w+)", key)
    present = [one.name for one in recipe.objectives]
    for name in OBJECTIVES:
        if found and _short(name) == found[1] and name not in present:
            entry = json.dumps([{"name": name, "weight": 0.1}])
            raise UnknownNameError(
                f"the recipe {recipe.name!r} does not list the objective {name!r}; set the list, "
                f"as in `objectives={entry}`",
                name=name,
                known=present,
            )


def _built(key: str, kind: type[Any], content: Mapping[str, Any]) -> Any:
    prefix = f"{key}." if key else ""
    needed = {one.name for one in fields(kind) if one.default is one.default_factory is MISSING}
    for name in sorted(needed - content.keys()):
        raise SpecError(f"{prefix}{name} is missing; it has no default")
    kind = options_of(kind, content["name"]) if kind in NAMED else kind
    hints = _kinds(kind)
    for name in content:
        if name not in hints:
            raise unknown_name(
                "recipe option", f"{prefix}{name}", [f"{prefix}{one}" for one in hints]
            )
    return kind(**{name: _fit(f"{prefix}{name}", hints[name], content[name]) for name in content})


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
            if isinstance(value, str):  # as people write a list: ``1,2``
                value = [_parsed(item) for item in listed(value or None)]
            items = value if isinstance(value, list | tuple) else [value]
            return tuple(_fit(key, get_args(accepted)[0], item) for item in items)
        if is_dataclass(accepted) and isinstance(value, Mapping):
            assert isinstance(accepted, type)
            return _built(key, accepted, value)
        if accepted is float and _is_number(value) and math.isfinite(value):
            return float(value)
        if accepted is str and _is_number(value):
            return str(value)
        if accepted is not float and isinstance(accepted, type) and type(value) is accepted:
            return value
    raise SpecError(f"{key} cannot be {shown(value)}; it is {_described(kind)}")


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
    if is_dataclass(kind):
        return "an object in JSON, with its options"
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def raise_all(faults: Sequence[ParsebankError]) -> None:
    """Raise the one fault, or an error that lists all of them; nothing without any."""
    if len(faults) > 1:
        listed = "".join(f"\n  {fault.message}" for fault in faults)
        raise SpecError(f"there are {len(faults)} mistakes:{listed}")
    if faults:
        raise faults[0]
