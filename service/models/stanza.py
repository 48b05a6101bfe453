"""Stanza's list of its models, ``resources.json``, as offers and as a folder's own list.

Stanza itself reads only the list of its model folder. Ours has only the models that are there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any, Final

from service.parsers.records import ModelRecord, recorded_file
from service.parsers.stanza.packages import (
    BACKEND,
    DEFAULT,
    PROCESSORS,
    RESOURCES,
    named_packages,
    needed_files,
    packages_in,
    read_list,
)
from syntax.errors import DownloadError
from syntax.extras import missing_extra
from syntax.files import write_whole
from syntax.strict_json import parse_json

FOLDER: Final = "stanza"
"""Sub-folder of a models folder that holds every Stanza package."""


def resources_version() -> str:
    """Version of the list that the installed Stanza reads, found without importing it."""
    spec = find_spec("stanza")
    if spec is None or not spec.submodule_search_locations:
        raise missing_extra("Stanza is not installed", "stanza")
    found = run_path(str(Path(spec.submodule_search_locations[0]) / "_version.py"))
    return str(found["__resources_version__"])


def read_resources(text: str, where: str) -> dict[str, Any]:
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
    records = []
    try:
        languages = {lang: entry for lang, entry in resources.items() if isinstance(entry, dict)}
        for package in packages_in(Path(FOLDER), languages):
            entry = languages[package.lang]
            known = [entry.get(file.parent.name, {}).get(file.stem) for file in package.files]
            if None in known:
                continue
            files = tuple(
                recorded_file({"path": file.as_posix(), "md5": about.get("md5")}, RESOURCES)
                for file, about in zip(package.files, known, strict=True)
            )
            record = ModelRecord(
                name=package.model_name,
                backend=BACKEND,
                files=files,
                language=package.lang,
                treebank=package.treebank,
                version=version,
                licence=licence,
                resources=_part(package.lang, entry, package.name),
            )
            records.append(record)
    except (KeyError, TypeError, AttributeError) as error:
        raise DownloadError(f"Stanza's list of models is not as expected: {error!r}") from None
    return records


def add_resources(models_dir: Path, record: ModelRecord) -> None:
    if record.backend == BACKEND and record.resources is not None:
        folder = models_dir / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        _write_list(folder, merged(read_list(folder), record.resources))


def drop_resources(models_dir: Path, record: ModelRecord) -> None:
    """Remove a package's part from the list that Stanza reads; an empty list is deleted."""
    folder = models_dir / FOLDER
    if record.resources is None or not (folder / RESOURCES).exists():
        return
    if left := without(read_list(folder), record.resources):
        _write_list(folder, left)
    else:
        (folder / RESOURCES).unlink()


def merged(resources: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(resources)
    for key, value in part.items():
        before: Any = result.get(key)
        both = isinstance(value, dict) and isinstance(before, dict)
        result[key] = merged(before, value) if both else value
    return result


def without(resources: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Remove a package and the parts that only it needed."""
    result = dict(resources)
    for lang, entry in part.items():
        before = result.pop(lang, {})
        gone = entry.get("packages", {})
        kept = {name: of for name, of in before.get("packages", {}).items() if name not in gone}
        for name in kept:
            result = merged(result, _part(lang, {**before, "packages": kept}, name))
    return result


def _part(lang: str, entry: Mapping[str, Any], package: str) -> dict[str, Any]:
    of_package = named_packages(entry)[package]
    chosen = {kind: name for kind, name in of_package.items() if kind in PROCESSORS}
    part: dict[str, Any] = {"packages": {package: chosen}}
    if package == DEFAULT:
        part["default_processors"] = chosen
    if "lang_name" in entry:
        part["lang_name"] = entry["lang_name"]
    for kind, name in needed_files(entry, chosen):
        if name in entry.get(kind, {}):
            part.setdefault(kind, {})[name] = entry[kind][name]
    return {lang: part}


def _write_list(folder: Path, resources: Mapping[str, Any]) -> None:
    content = json.dumps(resources, indent=1, ensure_ascii=False)
    write_whole(folder / RESOURCES, f"{content}\n".encode())
