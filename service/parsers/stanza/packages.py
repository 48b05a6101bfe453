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
from service.parsers.files import read_file
from syntax.errors import ModelLoadError
from syntax.extras import missing_extra
from syntax.strict_json import parse_json

BACKEND: Final = "stanza.v1"
PROCESSORS: Final = ("tokenize", "mwt", "pos", "lemma", "depparse")
RESOURCES: Final = "resources.json"

_NEEDED: Final = ("tokenize", "pos", "depparse")
_IDENTITY: Final = "identity"
_DEFAULT: Final = "default"
_CHARLM: Final = ("_charlm", "_nocharlm")


@dataclass(frozen=True)
class Package:
    """A package whose files are all there.

    Attributes:
        folder: The model folder that Stanza is pointed at.
        lang: Stanza's code of the language.
        name: ``default``, or the package's own name.
        processors: Name of each processor's model.
        files: Every file that the processors are made of, what they build on included.
    """

    folder: Path
    lang: str
    name: str
    processors: Mapping[str, str]
    files: tuple[Path, ...]

    @property
    def model_name(self) -> str:
        """``stanza/fr`` for a language's default package, else ``stanza/fr-partut``."""
        suffix = "" if self.name == _DEFAULT else f"-{self.name}"
        return f"stanza/{self.lang}{suffix}"

    @property
    def treebank(self) -> str:
        """What the parser was trained from, as Stanza calls it."""
        return self.processors["depparse"].removesuffix(_CHARLM[1]).removesuffix(_CHARLM[0])


def find_stanza(folder: Path) -> Iterator[ModelFile]:
    """The models in a folder: each package whose files are there.

    Raises:
        ModelLoadError: ``resources.json`` is not readable JSON, or not as Stanza writes it.
    """
    resources = _languages(folder)
    try:
        packages = list(_packages(folder, resources))
    except (AttributeError, KeyError, TypeError):
        path = folder / RESOURCES
        raise ModelLoadError(f"{path} is no list of Stanza's packages", path=str(path)) from None
    for package in packages:
        card = {"language": package.lang, "treebank": package.treebank}
        langs = _codes(package.lang, resources)
        yield ModelFile(BACKEND, package.model_name, folder, langs, None, card, package.files)


def package_of(model: ModelFile) -> Package:
    """The package that a model was found as.

    Raises:
        ModelLoadError: It is no longer there.
    """
    for package in _packages(model.path, _languages(model.path)):
        if package.model_name == model.name:
            return package
    raise ModelLoadError(
        f"{model.path} does not hold all files of {model.name}; fetch it again",
        path=str(model.path),
    )


def stanza_version() -> str:
    """Version of the Stanza library; nothing is imported.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return version("stanza")
    except PackageNotFoundError:
        raise missing_extra("Stanza models need the extra `stanza`", "stanza") from None


def read_list(folder: Path) -> dict[str, Any]:
    """The content of a folder's ``resources.json``; empty if the file is missing.

    Raises:
        ModelLoadError: It is no readable JSON object.
    """
    path = folder / RESOURCES
    try:
        text = read_file(path)
        resources = {} if text is None else parse_json(text)
    except (ModelLoadError, ValueError) as error:
        raise ModelLoadError(f"{path} cannot be read: {error}", path=str(path)) from None
    if not isinstance(resources, dict):
        raise ModelLoadError(f"{path} is not a JSON object", path=str(path))
    return resources


def _languages(folder: Path) -> dict[str, Any]:
    return {lang: entry for lang, entry in read_list(folder).items() if isinstance(entry, dict)}


def _packages(folder: Path, resources: Mapping[str, Any]) -> Iterator[Package]:
    """Complete packages, the default first; another name for the same files is left out."""
    for lang, entry in resources.items():
        named = entry.get("packages") or {_DEFAULT: entry.get("default_processors")}
        seen: set[tuple[Path, ...]] = set()
        for name in sorted(named, key=lambda name: (name != _DEFAULT, name)):
            processors = _processors(named[name])
            files = tuple(_files(folder / lang, entry, processors)) if processors else ()
            if files and files not in seen and all(map(os.path.isfile, files)):
                seen.add(files)
                yield Package(folder, lang, name, processors, files)


def _processors(chosen: Any) -> dict[str, str]:
    """The processors of a package that a parse needs; none if it cannot parse."""
    if not isinstance(chosen, dict) or not all(isinstance(chosen.get(key), str) for key in _NEEDED):
        return {}
    complete = {"lemma": _IDENTITY, **chosen}
    return {key: complete[key] for key in PROCESSORS if isinstance(complete.get(key), str)}


def _files(folder: Path, entry: Mapping[str, Any], processors: Mapping[str, str]) -> Iterator[Path]:
    """The files of the processors, each followed by the first use of what it builds on."""
    seen: set[tuple[str, str]] = set()
    for kind, name in processors.items():
        if (kind, name) == ("lemma", _IDENTITY):
            continue
        known = entry.get(kind, {}).get(name, {})
        below = [(item["model"], item["package"]) for item in known.get("dependencies", ())]
        for part in [(kind, name), *below]:
            if part not in seen:
                seen.add(part)
                yield folder / part[0] / f"{part[1]}.pt"


def _codes(lang: str, resources: Mapping[str, Any]) -> tuple[str, ...]:
    """The language's codes, ISO's first: ``zh`` before ``zh-hans``, and other codes for it."""
    aliases = [code for code, entry in resources.items() if entry.get("alias") == lang]
    short = [code for code in aliases if len(code) <= len("xxx")]
    return tuple(dict.fromkeys([lang.partition("-")[0], lang, *short]))
