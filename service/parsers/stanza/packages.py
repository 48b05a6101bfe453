"""Stanza's packages in a folder: a tokenizer, tagger, lemmatizer and parser that belong together.

The folder is as ``stanza.download`` leaves it: ``resources.json`` and
``<lang>/<processor>/<name>.pt``. Nothing here imports Stanza.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from service.parsers.base import ModelFile
from service.parsers.files import read_object
from syntax.errors import ModelLoadError
from syntax.extras import missing_extra

BACKEND: Final = "stanza.v1"
PROCESSORS: Final = ("tokenize", "mwt", "pos", "lemma", "depparse")
RESOURCES: Final = "resources.json"
DEFAULT: Final = "default"

_NEEDED: Final = ("tokenize", "pos", "depparse")
_IDENTITY: Final = "identity"
_CHARLM: Final = ("_charlm", "_nocharlm")


@dataclass(frozen=True)
class Package:
    """A package that can parse.

    Attributes:
        folder: The model folder that Stanza is pointed at.
        lang: Stanza's code of the language.
        name: ``default``, or the package's own name.
        files: Every file of the processors and of their dependencies.
    """

    folder: Path
    lang: str
    name: str
    processors: Mapping[str, str]
    files: tuple[Path, ...]

    @property
    def model_name(self) -> str:
        """Name as ``stanza/fr`` (default package) or ``stanza/fr-partut``."""
        suffix = "" if self.name == DEFAULT else f"-{self.name}"
        return f"stanza/{self.lang}{suffix}"

    @property
    def treebank(self) -> str:
        return self.processors["depparse"].removesuffix(_CHARLM[1]).removesuffix(_CHARLM[0])

    @property
    def is_complete(self) -> bool:
        return all(map(os.path.isfile, self.files))


def find_stanza(folder: Path) -> Iterator[ModelFile]:
    """Complete packages; an unreadable ``resources.json`` is a `ModelLoadError`."""
    resources = _languages(folder)
    try:
        packages = [package for package in packages_in(folder, resources) if package.is_complete]
    except (AttributeError, KeyError, TypeError):
        path = folder / RESOURCES
        raise ModelLoadError(f"{path} is no list of Stanza's packages", path=str(path)) from None
    for package in packages:
        card = {"language": package.lang, "treebank": package.treebank}
        langs = _codes(package.lang, resources)
        yield ModelFile(BACKEND, package.model_name, folder, langs, None, card, package.files)


def package_of(model: ModelFile) -> Package:
    for package in packages_in(model.path, _languages(model.path)):
        if package.model_name == model.name and package.is_complete:
            return package
    raise ModelLoadError(
        f"{model.path} does not hold all files of {model.name}; fetch it again",
        path=str(model.path),
    )


def packages_in(folder: Path, resources: Mapping[str, Any]) -> Iterator[Package]:
    """Packages of a list that can parse, the default of a language first, without duplicates."""
    for lang, entry in resources.items():
        named = named_packages(entry)
        seen: set[tuple[Path, ...]] = set()
        for name in sorted(named, key=lambda name: (name != DEFAULT, name)):
            if not (processors := _processors(named[name])):
                continue
            needed = needed_files(entry, processors)
            files = tuple(folder / lang / kind / f"{file}.pt" for kind, file in needed)
            if files not in seen:
                seen.add(files)
                yield Package(folder, lang, name, processors, files)


def named_packages(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Packages by name; older lists have the default package under another key."""
    return entry.get("packages") or {DEFAULT: entry.get("default_processors")}


def needed_files(entry: Mapping[str, Any], processors: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Processors of a package and their dependencies, as (kind, name)."""
    own = [
        (kind, name)
        for kind in PROCESSORS
        if isinstance(name := processors.get(kind), str) and (kind, name) != ("lemma", _IDENTITY)
    ]
    built_on = [
        (dependency["model"], dependency["package"])
        for kind, name in own
        for dependency in entry.get(kind, {}).get(name, {}).get("dependencies", ())
    ]
    return list(dict.fromkeys([*own, *built_on]))


def stanza_version() -> str:
    try:
        return version("stanza")
    except PackageNotFoundError:
        raise missing_extra("Stanza models need the extra `stanza`", "stanza") from None


def read_list(folder: Path) -> dict[str, Any]:
    return read_object(folder / RESOURCES)


def _languages(folder: Path) -> dict[str, Any]:
    return {lang: entry for lang, entry in read_list(folder).items() if isinstance(entry, dict)}


def _processors(chosen: Any) -> dict[str, str]:
    if not isinstance(chosen, dict) or not all(isinstance(chosen.get(key), str) for key in _NEEDED):
        return {}
    complete = {"lemma": _IDENTITY, **chosen}
    return {key: complete[key] for key in PROCESSORS if isinstance(complete.get(key), str)}


def _codes(lang: str, resources: Mapping[str, Any]) -> tuple[str, ...]:
    """Codes of a language, ISO's first: ``zh`` before ``zh-hans``."""
    aliases = [code for code, entry in resources.items() if entry.get("alias") == lang]
    short = [code for code in aliases if len(code) <= len("xxx")]
    return tuple(dict.fromkeys([lang.partition("-")[0], lang, *short]))
