"""Models in a folder and its direct sub-folders, read again when something in it has changed."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from service.parsers.base import Backend, ModelFile
from service.parsers.records import ModelRecord, read_records
from syntax.errors import ModelLoadError

_SETTLED_SECONDS: Final = 0.1
"""Changes within a tick of the file system's clock leave one time stamp."""

_log = logging.getLogger(__name__)

_VERSION: Final = re.compile(r"-ud-(\d+(?:[.-]\d+)*)$")


@dataclass(frozen=True)
class _Snapshot:
    """Found models, and the files whose time stamps tell if they still hold."""

    watched: tuple[str, ...]
    stamps: tuple[int, ...]
    models: tuple[ModelFile, ...]


_snapshots: dict[Path, _Snapshot] = {}


def models_in(folder: Path, backends: Mapping[str, Backend]) -> tuple[ModelFile, ...]:
    """Models of a folder and its direct sub-folders, described by its registry file.

    Of two with one name the first place counts: the folder itself, then its sub-folders by name.
    Listed by backend, then by name, the newest version of a model first. An unreadable file affects
    only its model (`ModelFile.problem`).
    """
    known = _snapshots.get(folder)
    if known is not None and known.stamps == _stamps(known.watched):
        return known.models
    # Stamps first: what changes while we read is then read again.
    watched = tuple(dict.fromkeys(map(str, _watched(folder))))
    stamps = _stamps(watched)
    models = tuple(_read(folder, backends))
    _snapshots.pop(folder, None)
    # A file of a model that is mended in place changes none of these stamps.
    is_sound = not any(model.problem for model in models)
    if is_sound and abs(time.time_ns() - max(stamps)) > _SETTLED_SECONDS * 1e9:
        _snapshots[folder] = _Snapshot(watched, stamps, models)
    return models


def places(folder: Path) -> Iterator[Path]:
    """The folder and its sub-folders, but hidden ones, or a training's ``*.work``."""
    try:
        # An entry's own `is_dir` raises where a link leads to itself, or out of reach.
        names = sorted(e.name for e in os.scandir(folder) if os.path.isdir(e.path))  # noqa: PTH112
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        _log.warning("the models in %s cannot be read: %s", folder, error.strerror)
        return
    yield folder
    for name in names:
        if not name.startswith(".") and not name.endswith(".work"):
            yield folder / name


def split_version(name: str) -> tuple[str, tuple[int, ...]]:
    """Name without its version, and the version as numbers.

    >>> split_version("udpipe/english-ewt-ud-2.5-191206")
    ('udpipe/english-ewt', (2, 5, 191206))
    """
    found = _VERSION.search(name)
    if found is None:
        return name, ()
    return name[: found.start()], tuple(int(part) for part in re.split("[.-]", found[1]))


def _read(folder: Path, backends: Mapping[str, Backend]) -> list[ModelFile]:
    records: Mapping[str, ModelRecord] = {}
    problem = None
    try:
        records = read_records(folder)
    except ModelLoadError as error:
        problem = error.message
    found: dict[str, ModelFile] = {}
    for place in places(folder):
        for model in _found(place, backends):
            known = replace(model, problem=problem) if problem else model
            found.setdefault(model.name, _described(known, folder, records))
    order = list(backends)
    newest_first = sorted(
        found.values(), key=lambda model: split_version(model.name)[1], reverse=True
    )
    return sorted(
        newest_first, key=lambda model: (order.index(model.backend), split_version(model.name)[0])
    )


def _found(place: Path, backends: Mapping[str, Backend]) -> Iterator[ModelFile]:
    if not os.access(place, os.R_OK | os.X_OK):
        _log.warning("the models in %s cannot be read: Permission denied", place)
    for backend in backends.values():
        try:
            yield from backend.find(place)
        except ModelLoadError as error:
            _log.warning("%s", error.message)


def _described(model: ModelFile, folder: Path, records: Mapping[str, ModelRecord]) -> ModelFile:
    """Model with its record, which takes precedence over its card."""
    record = records.get(model.name)
    if record is None or folder / record.files[0].path not in model.files:
        return model
    # A backend may know more codes of the language than the record has.
    lang = record.language
    langs = (lang,) if lang and lang not in model.langs else model.langs
    card = {**model.card, **record.facts}
    return replace(model, langs=langs, sha256=record.sha256 or model.sha256, card=card)


def _watched(folder: Path) -> Iterator[Path]:
    """Folders, whose time stamps tell of new and removed files, and every JSON file in them."""
    yield folder
    for place in places(folder):
        yield place
        yield from sorted(place.glob("*.json"))


def _stamps(watched: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(_stamp, watched))


def _stamp(path: str) -> int:
    try:
        status = os.stat(path)  # noqa: PTH116 - half the time of Path.stat
    except OSError:
        return 0
    # Permissions that change leave the time of the last change of content as it was.
    return max(status.st_mtime_ns, status.st_ctime_ns)
