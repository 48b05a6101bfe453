"""Models under the names that clients of the UDPipe REST API use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any, Final

from service.parsers import ModelFile, find_parser, list_models
from service.settings import Settings
from syntax.errors import UnknownNameError

COMPONENTS: Final = ("tokenizer", "tagger", "parser")


def lindat_models(settings: Settings) -> dict[str, Any]:
    """Answer to ``models``; names are short, unless models of two backends share one."""
    names = names_of(settings)
    answer: dict[str, Any] = {"models": {name: list(COMPONENTS) for name in names.values()}}
    # If the default language has no model, the other models can still be named.
    with suppress(UnknownNameError):
        answer["default_model"] = names[find_parser(settings).name]
    return answer


def names_of(settings: Settings) -> dict[str, str]:
    """Client name of each model: the short one if it leads back (``fr`` is a language code)."""
    names = short_names([model.name for model in list_models(settings)])
    return {
        name: short if find_parser(settings, short).name == name else name
        for name, short in names.items()
    }


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Names without their backends, where they stay distinct.

    >>> short_names(["udpipe/en", "udpipe/fr", "stanza/fr"])
    {'udpipe/en': 'en', 'udpipe/fr': 'udpipe/fr', 'stanza/fr': 'stanza/fr'}
    """
    short = [name.partition("/")[2] for name in names]
    pairs = zip(names, short, strict=True)
    return {name: own if short.count(own) == 1 else name for name, own in pairs}


def acknowledgements(model: ModelFile) -> list[str]:
    keys = ("treebank", "attribution", "licence")
    return [f"{key}: {model.card[key]}" for key in keys if model.card.get(key)]


def header(model: ModelFile, name: str) -> str:
    lines = [f"# generator = Parsebank {version('parsebank')}", f"# udpipe_model = {name}"]
    if licence := model.card.get("licence"):
        lines.append(f"# udpipe_model_licence = {licence}")
    return "".join(f"{' '.join(line.split())}\n" for line in lines)
