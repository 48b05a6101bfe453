"""Differences between a published system and its released code, each with two settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switch:
    """One place where paper and code differ: a recipe option, and the effect of each setting."""

    option: str
    published: str
    released: str
