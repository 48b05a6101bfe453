"""Parsers, whose names are imported at first use, so that the command line starts quickly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.parsers.base import (
        Backend,
        Limits,
        ModelFile,
        ParseInput,
        Parser,
        ParserIdentity,
    )
    from service.parsers.registry import BACKENDS, find_parser, identify, list_models, load_parser

__all__ = [
    "BACKENDS",
    "Backend",
    "Limits",
    "ModelFile",
    "ParseInput",
    "Parser",
    "ParserIdentity",
    "find_parser",
    "identify",
    "list_models",
    "load_parser",
]

_REGISTRY = ("BACKENDS", "find_parser", "identify", "list_models", "load_parser")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "service.parsers.registry" if name in _REGISTRY else "service.parsers.base"
    return getattr(import_module(home), name)
