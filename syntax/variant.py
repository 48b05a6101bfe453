"""Where a paper and its released code differ: one switch with two settings."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from syntax.errors import SpecError

Variant: TypeAlias = Literal["as_published", "as_released"]


def is_released(variant: str) -> bool:
    """Whether to do as the released code does.

    Raises:
        SpecError: Neither ``as_published`` nor ``as_released``.
    """
    if variant not in get_args(Variant):
        raise SpecError(f"variant is {variant!r}; it is one of {', '.join(get_args(Variant))}")
    return variant == "as_released"
