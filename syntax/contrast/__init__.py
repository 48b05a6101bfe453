"""Contrastive samples of phrases and trees (SynCLM), drawn outside of the training step."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, Literal, get_origin, get_type_hints

from syntax.contrast.base import Sampler
from syntax.contrast.phrases import PhraseSampler
from syntax.contrast.trees import TreeSampler
from syntax.errors import SpecError
from syntax.options import parse_call, value_of
from syntax.registry import Registry, unknown_name

__all__ = ["SAMPLERS", "PhraseSampler", "Sampler", "TreeSampler", "read_sampler"]

SAMPLERS: Final[Registry[type[Any]]] = Registry("sampler")
"""Samplers by name; recipes and commands add settings in brackets."""

SAMPLERS.add("phrase.v1", PhraseSampler)
SAMPLERS.add("tree.v1", TreeSampler)


def read_sampler(text: str) -> Sampler:
    """Make a sampler from its name with settings.

    >>> read_sampler("phrase(way=lr_sib, negatives=5)").negatives
    5
    """
    call = parse_call(text.strip())
    if call is None:
        raise SpecError(f"{text!r} is not a sampler; write NAME or NAME(SETTING=VALUE)")
    name = SAMPLERS.resolve(call.name.strip())
    kind, settings = SAMPLERS[name], {}
    hints, known = get_type_hints(kind), [field.name for field in fields(kind)]
    for key, value in call.settings.items():
        if value is None:
            raise SpecError(f"the setting {key!r} of {name} has no '='; write `{key}=VALUE`")
        if key not in known:
            raise unknown_name(f"setting of {name}", key, known)
        settings[key] = _value(f"{name}: {key}", hints[key], value)
    sampler: Sampler = kind(**settings)
    return sampler


def _value(name: str, kind: Any, text: str) -> Any:
    if get_origin(kind) is Literal:
        return text
    try:
        value = float(text) if kind is float else value_of(text)
    except ValueError:
        value = text
    if type(value) is not kind:
        raise SpecError(f"{name} is {text!r}; it is of type {kind.__name__}")
    return value
