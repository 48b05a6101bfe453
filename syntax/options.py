"""Options defined once: a dataclass field with its type, default, check and documentation."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from syntax.errors import SpecError


@dataclass(frozen=True, slots=True)
class Option:
    """Documentation of an option, Markdown without a line break, and the least of its numbers."""

    doc: str
    low: int | None = None


class Field(NamedTuple):
    """An option of a class; ``default`` is `dataclasses.MISSING` where there is none."""

    kind: Any
    default: Any
    doc: str
    low: int | None

    def checked(self, name: str, value: Any) -> Any:
        return value if value is self.default else checked(name, self.kind, value, self.low)


_READ: Final[dict[type[Any], Mapping[str, Field]]] = {}


def options_of(owner: type[Any]) -> Mapping[str, Field]:
    """Options of a class by name, in the order of its fields; other fields are left out.

    A subclass may give an option another type and default; `Option` is inherited.

    >>> from syntax.batches import AssemblySpec
    >>> options_of(AssemblySpec)["stride"].low
    1
    """
    if owner not in _READ:
        notes: dict[str, Option] = {}
        for base in reversed(owner.__mro__):
            for name, hint in get_type_hints(base, include_extras=True).items():
                for note in get_args(hint)[1:]:
                    if isinstance(note, Option):
                        notes[name] = note
        kinds = get_type_hints(owner)
        _READ[owner] = MappingProxyType(
            {
                field.name: Field(kinds[field.name], field.default, note.doc, note.low)
                for field in fields(owner)
                if (note := notes.get(field.name)) is not None
            }
        )
    return _READ[owner]


def check_options(options: Any) -> None:
    """Check every option of a dataclass, and store it in its type: a list as a tuple."""
    for name, field in options_of(type(options)).items():
        object.__setattr__(options, name, field.checked(name, getattr(options, name)))


def checked(name: str, kind: Any, value: Any, low: int | None = None) -> Any:
    """A value in the type that was asked for; ``low`` also bounds the items of a tuple.

    ``kind`` is ``int``, ``bool``, ``str``, a ``Literal`` of texts, ``tuple[kind, ...]``, a class,
    or a union of some of these and ``None``. Numbers and booleans may be NumPy's; a tuple may be
    any collection but a text.

    >>> checked("matrices", tuple[str, ...], ["depth"])
    ('depth',)
    """
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if value is None and NoneType in kinds:
        return None
    kinds = tuple(one for one in kinds if one is not NoneType)
    return _as_kind(name, next((x for x in kinds if _is_meant(x, value)), kinds[-1]), value, low)


def _is_meant(kind: Any, value: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin in (Literal, str):
        return isinstance(value, str)
    if origin is tuple:
        return isinstance(value, Iterable) and not isinstance(value, str)
    return isinstance(value, origin)


def _as_kind(name: str, kind: Any, value: Any, low: int | None) -> Any:
    origin = get_origin(kind) or kind
    if origin is tuple:
        item = get_args(kind)[0]
        return tuple(checked(f"one of {name}", item, one, low) for one in _items(name, item, value))
    if origin is Literal:
        if not isinstance(value, str) or value not in get_args(kind):
            raise _wrong(name, value, f"one of {', '.join(get_args(kind))}")
        return value
    if origin is int:
        return _whole_number(name, value, low)
    if origin is bool:
        if not isinstance(value, bool | np.bool_):
            raise _wrong(name, value, "True or False")
        return bool(value)
    if not isinstance(value, origin):
        called = "a text" if origin is str else f"a {origin.__name__} ({origin.__module__})"
        raise _wrong(name, value, called)
    return value


def _items(name: str, item: Any, value: Any) -> Iterable[Any]:
    if isinstance(value, str):
        raise _wrong(name, value, f"a list: [{value!r}]" if item is str else "a list")
    if not isinstance(value, Iterable):
        raise _wrong(name, value, "a list")
    return value


def _whole_number(name: str, value: Any, low: int | None) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise _wrong(name, value, "a whole number") from None
    if low is not None and number < low:
        raise _wrong(name, number, f"at least {low}")
    return number


def _wrong(name: str, value: Any, expected: str) -> SpecError:
    return SpecError(f"{name} is {value!r}; it must be {expected}")


class Bounds(NamedTuple):
    """Bounds of the numbers of an option, in its annotation; ``above`` refuses ``low`` itself."""

    low: float
    high: float | None = None
    above: bool = False


Count: TypeAlias = Annotated[int, Bounds(1)]
NonNegativeInt: TypeAlias = Annotated[int, Bounds(0)]
NonNegative: TypeAlias = Annotated[float, Bounds(0)]
Positive: TypeAlias = Annotated[float, Bounds(0, above=True)]
Probability: TypeAlias = Annotated[float, Bounds(0, 1)]
Share: TypeAlias = Annotated[float, Bounds(0, 1, above=True)]


_KINDS: Final[dict[type[Any], dict[str, Any]]] = {}


def check_fields(prefix: str, options: Any) -> None:
    """Check fields of a dataclass by `Bounds` and `Literal`; a subclass calls its base's check."""
    owner = type(options)
    if owner not in _KINDS:
        hints = get_type_hints(owner, include_extras=True)
        _KINDS[owner] = {field.name: hints[field.name] for field in fields(owner)}
    for name, kind in _KINDS[owner].items():
        _check_value(f"{prefix}.{name}" if prefix else name, kind, getattr(options, name))


def _check_value(name: str, kind: Any, value: Any) -> None:
    origin, given = get_origin(kind), get_args(kind)
    if origin is Literal and value not in given:
        raise SpecError(f"{name} is {value!r}; it is one of {', '.join(map(str, given))}")
    if origin is Annotated:
        for bounds in (note for note in given[1:] if isinstance(note, Bounds)):
            if not isinstance(value, int | float | np.number):
                raise SpecError(f"{name} is {value!r}; it must be a number")
            number = float(value) if isinstance(value, np.number) else value
            check_range(name, number, *bounds)
    elif origin is tuple and isinstance(value, tuple | list):
        for item in value:
            _check_value(name, given[0], item)
    elif origin in (Union, UnionType) and value is not None:
        choices = [
            choice for one in given if get_origin(one) is Literal for choice in get_args(one)
        ]
        others = [one for one in given if get_origin(one) is not Literal]
        for one in others if value not in choices else ():
            _check_value(name, one, value)


def check_range(
    name: str, value: float, low: float, high: float | None = None, above: bool = False
) -> None:
    """Refuse a number outside its range, which includes its ends, except ``low`` with ``above``."""
    # Put so that NaN, which is neither below nor above anything, is refused too.
    is_low = not (value > low if above else value >= low)
    if is_low or not (high is None or value <= high):
        lower = f"above {low}" if above else f"at least {low}"
        upper = "" if high is None else f" and at most {high}"
        raise SpecError(f"{name} is {value}; it must be {lower}{upper}")


_CALL: Final = re.compile(r"(?P<name>[^()]+)(?:\((?P<settings>[^()]*)\))?")


class Call(NamedTuple):
    """A name and its settings, as text; a setting without ``=`` has the value None."""

    name: str
    settings: dict[str, str | None]


def parse_call(text: str) -> Call | None:
    """Take apart a name with settings in brackets; None where a text is not one.

    Commas part settings or, where they part the names of a list, semicolons.

    >>> parse_call("phrase(way=lr_sib; negatives=5)")
    Call(name='phrase', settings={'way': 'lr_sib', 'negatives': '5'})
    """
    found = _CALL.fullmatch(text)
    if found is None:
        return None
    parts = [part.partition("=") for part in re.split("[,;]", found["settings"] or "")]
    settings = {
        key.strip(): value.strip() if equals else None
        for key, equals, value in parts
        if key.strip() or equals
    }
    return Call(found["name"], settings)


def value_of(text: str) -> bool | int | str:
    """A setting of a `Call` in the simplest type that it has: ``true``, ``4``, ``as_released``."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else text


def options_table(owner: type[Any]) -> str:
    rows = ["| option | type | default | what it decides |", "|---|---|---|---|"]
    for name, field in options_of(owner).items():
        union = get_origin(field.kind) in (Union, UnionType)
        kinds = get_args(field.kind) if union else (field.kind,)
        least = "" if field.low is None else f", at least {field.low}"
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        shown = "needed" if default is MISSING else f"`{default!r}`"
        cells = (f"`{name}`", " or ".join(map(_in_words, kinds)) + least, shown, field.doc)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _in_words(kind: Any) -> str:
    origin = get_origin(kind) or kind
    if origin is Literal:
        return ", ".join(f"`{choice!r}`" for choice in get_args(kind))
    if origin is tuple:
        item = get_args(kind)[0]
        union = get_origin(item) in (Union, UnionType)
        return f"list of {' or '.join(map(_in_words, get_args(item) if union else (item,)))}"
    words = {int: "whole number", float: "number", bool: "`True` or `False`", str: "text"}
    words[NoneType] = "`None`"
    return words.get(origin, f"`{origin.__name__}`")
