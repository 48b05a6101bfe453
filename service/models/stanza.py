"""Stanza's list of its models, ``resources.json``, as offers and as what a folder's own list says.

Stanza itself reads only the ``resources.json`` of its model folder. Ours names what is there and
nothing else; each pulled package adds its part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any, Final

from service.parsers.records import ModelRecord, recorded_file, write_whole
from service.parsers.stanza.packages import BACKEND, PROCESSORS, RESOURCES, read_list
from syntax.errors import DownloadError
from syntax.extras import missing_extra
from syntax.strict_json import parse_json

FOLDER: Final = "stanza"
"""Sub-folder of a models folder that holds every Stanza package."""

_DEFAULT: Final = "default"
_LEFT_OUT: Final = ("_charlm", "_nocharlm")


def resources_version() -> str:
    """The version of the list that the installed Stanza reads, found without importing it.

    Raises:
        MissingExtraError: Stanza is not installed.
    """
    spec = find_spec("stanza")
    if spec is None or not spec.submodule_search_locations:
        raise missing_extra("Stanza is not installed", "stanza")
    found = run_path(str(Path(spec.submodule_search_locations[0]) / "_version.py"))
    return str(found["__resources_version__"])


def read_resources(text: str, where: str) -> dict[str, Any]:
    """Read a ``resources.json``.

    Raises:
        DownloadError: It is no JSON object.
    """
    try:
        resources = parse_json(text)
    except ValueError as error:
        raise DownloadError(f"{where} is not JSON: {error}", source=where) from None
    if not isinstance(resources, dict):
        raise DownloadError(f"{where} is not a JSON object", source=where)
    return resources


def stanza_records(
    resources: Mapping[str, Any], version: str | None, licence: str | None
) -> list[ModelRecord]:
    """Every package that can parse: a language's default as ``stanza/fr``, others by name.

    Of two packages of the same files only the first is offered, as only it is found afterwards.

    Raises:
        DownloadError: The list is not as Stanza writes it.
    """
    try:
        languages = {
            lang: _with_packages(entry)
            for lang, entry in resources.items()
            if isinstance(entry, dict) and "alias" not in entry
        }
        return [
            _record(lang, entry, package, version, licence)
            for lang, entry in languages.items()
            for package in _packages(entry)
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise DownloadError(f"Stanza's list of models is not as expected: {error!r}") from None


def model_name(lang: str, package: str) -> str:
    """Name of a package.

    >>> model_name("fr", "default"), model_name("fr", "partut")
    ('stanza/fr', 'stanza/fr-partut')
    """
    return f"stanza/{lang}" if package == _DEFAULT else f"stanza/{lang}-{package}"


def add_resources(models_dir: Path, record: ModelRecord) -> None:
    """Add a package's part to the list that Stanza reads; other models have none.

    Raises:
        ModelLoadError: The list is no readable JSON object.
    """
    if record.backend == BACKEND and record.resources is not None:
        folder = models_dir / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        _write_list(folder, merged(read_list(folder), record.resources))


def drop_resources(models_dir: Path, record: ModelRecord) -> None:
    """Take a package's part out of the list that Stanza reads; an empty list is deleted.

    Raises:
        ModelLoadError: The list is no readable JSON object.
    """
    folder = models_dir / FOLDER
    if record.resources is None or not (folder / RESOURCES).exists():
        return
    if left := without(read_list(folder), record.resources):
        _write_list(folder, left)
    else:
        (folder / RESOURCES).unlink()


def _write_list(folder: Path, resources: Mapping[str, Any]) -> None:
    content = json.dumps(resources, indent=1, ensure_ascii=False)
    write_whole(folder / RESOURCES, content + "\n")


def merged(resources: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """A list with one package's part added; what it says of other packages stays."""
    result = dict(resources)
    for key, value in part.items():
        before: Any = result.get(key)
        both = isinstance(value, dict) and isinstance(before, dict)
        result[key] = merged({**before}, value) if both else value
    return result


def without(resources: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """A list without a package, and without what only that package needed."""
    result = dict(resources)
    for lang, entry in part.items():
        left = dict(result.get(lang, {}))
        packages = dict(left.get("packages", {}))
        for package in entry.get("packages", {}):
            packages.pop(package, None)
        result.pop(lang, None)
        if packages:
            rest = {**left, "packages": packages}
            parts = [_part(lang, rest, package) for package in packages]
            for kept in parts:
                result = merged(result, kept)
    return result


def _with_packages(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry of a language; older lists give the default package under another key."""
    if entry.get("packages") or "default_processors" not in entry:
        return entry
    return {**entry, "packages": {_DEFAULT: entry["default_processors"]}}


def _packages(entry: Mapping[str, Any]) -> list[str]:
    """A language's packages that can parse, the default first, each of other files."""
    names = sorted(entry.get("packages", {}), key=lambda name: (name != _DEFAULT, name))
    by_files: dict[tuple[Any, ...], str] = {}
    for name in names:
        if _can_parse(entry, name):
            by_files.setdefault(tuple(needed_files(entry, name)), name)
    return list(by_files.values())


def _can_parse(entry: Mapping[str, Any], package: str) -> bool:
    chosen = entry["packages"][package]
    needed = ("tokenize", "pos", "depparse")
    return isinstance(chosen, dict) and all(
        isinstance(chosen.get(processor), str) and chosen[processor] in entry.get(processor, {})
        for processor in needed
    )


def _record(
    lang: str, entry: Mapping[str, Any], package: str, version: str | None, licence: str | None
) -> ModelRecord:
    files = tuple(
        recorded_file(
            {"path": f"{FOLDER}/{lang}/{kind}/{name}.pt", "md5": entry[kind][name].get("md5")},
            RESOURCES,
        )
        for kind, name in needed_files(entry, package)
    )
    treebank = entry["packages"][package]["depparse"]
    for suffix in _LEFT_OUT:
        treebank = treebank.removesuffix(suffix)
    return ModelRecord(
        name=model_name(lang, package),
        backend=BACKEND,
        files=files,
        language=lang,
        treebank=treebank,
        version=version,
        licence=licence,
        resources=_part(lang, entry, package),
    )


def needed_files(entry: Mapping[str, Any], package: str) -> list[tuple[str, str]]:
    """What a package consists of, as (kind, name): its processors, and what these build on.

    A processor that is no file (``lemma`` may be ``identity``) is left out.
    """
    chosen = entry["packages"][package]
    models = [(kind, str(chosen[kind])) for kind in PROCESSORS if kind in chosen]
    there = [(kind, name) for kind, name in models if name in entry.get(kind, {})]
    built_on = [
        (dependency["model"], dependency["package"])
        for kind, name in there
        for dependency in entry[kind][name].get("dependencies", ())
    ]
    return list(dict.fromkeys([*there, *built_on]))


def _part(lang: str, entry: Mapping[str, Any], package: str) -> dict[str, Any]:
    """The part of a list that one package needs."""
    chosen = {kind: name for kind, name in entry["packages"][package].items() if kind in PROCESSORS}
    part: dict[str, Any] = {"packages": {package: chosen}}
    if package == _DEFAULT:
        part["default_processors"] = chosen
    if "lang_name" in entry:
        part["lang_name"] = entry["lang_name"]
    for kind, name in needed_files(entry, package):
        part.setdefault(kind, {})[name] = entry[kind][name]
    return {lang: part}
