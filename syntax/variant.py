"""Details in which a paper and its released code differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from syntax.errors import SpecError

Variant: TypeAlias = Literal["as_published", "as_released"]


def check_variant(option: str, value: str) -> None:
    if value not in get_args(Variant):
        raise SpecError(f"{option} is {value!r}; it is one of {', '.join(get_args(Variant))}")


def is_released(variant: str) -> bool:
    check_variant("variant", variant)
    return variant == "as_released"


@dataclass(frozen=True, slots=True)
class Switch:
    """One place where paper and code differ: a recipe option, and the effect of each setting."""

    option: str
    published: str
    released: str
