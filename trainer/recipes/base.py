"""The registry of recipes."""

from __future__ import annotations

from collections.abc import Callable

from syntax.registry import Registry
from trainer.options import Recipe

RECIPES: Registry[Callable[[], Recipe]] = Registry("recipe")
"""Every run by name. A recipe is a function, so that one can be made from another."""
