"""Check and remove the models of a folder, and note those that were trained into it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.models.stanza import drop_resources
from service.parsers.base import ModelFile
from service.parsers.discovery import models_in, places
from service.parsers.records import (
    ModelRecord,
    RecordedFile,
    changed_records,
    read_records,
)
from service.parsers.registry import BACKENDS, bundled_models_dir, list_models, load_parser
from service.parsers.stanza.packages import RESOURCES
from service.settings import Settings
from syntax.errors import ConflictError, ParsebankError, UnknownParserError
from syntax.fingerprint import file_sha256
from syntax.registry import unknown_name


@dataclass(frozen=True)
class Verdict:
    """What checking a model showed.

    Attributes:
        fingerprint: Of the parser, if the model is sound.
        compared: Whether a checksum was recorded to compare with.
        problem: What is wrong, if it is not.
    """

    name: str
    fingerprint: str | None = None
    compared: bool = False
    problem: str | None = None


def verify(settings: Settings, names: list[str]) -> list[Verdict]:
    """Check checksums and load models; all of them, or those named.

    Raises:
        UnknownParserError: There is no such model; names are to be given in full.
        ModelLoadError: A card or the registry file cannot be read.
    """
    models = {model.name: model for model in list_models(settings)}
    missing = {name: record for name, record in _records(settings).items() if name not in models}
    wanted = [_full_name(name, [*models, *missing]) for name in names]
    chosen = set(wanted) or {*models, *missing}
    return [
        *(_missing(record, settings) for name, record in missing.items() if name in chosen),
        *(_check(model) for name, model in models.items() if name in chosen),
    ]


def remove(models_dir: Path, name: str) -> list[Path]:
    """Delete a model's files and its record; says what was deleted.

    Files that another model of the folder needs too stay.

    Raises:
        UnknownParserError: There is no such model in the folder; the name is to be given in full.
        ConflictError: It is one that ships with Parsebank.
    """
    with changed_records(models_dir) as records:
        models = {model.name: model for model in models_in(models_dir, BACKENDS)}
        full = _removable(name, [*models, *(other for other in records if other not in models)])
        model, record = models.pop(full, None), records.pop(full, None)
        files = _files(models_dir, model, record)
        if record is not None:
            drop_resources(models_dir, record)
        needed = {file for other in models.values() for file in other.files}
        doomed = sorted(file for file in files if file not in needed and file.exists())
        for file in doomed:
            file.unlink()
            _drop_empty(file.parent, models_dir)
    return doomed


def note_trained(settings: Settings, model: Path, card: dict[str, Any]) -> bool:
    """Record a trained model if it lies in the models folder; says whether it does.

    Raises:
        ModelLoadError: The registry file cannot be read.
    """
    folder = settings.models_dir
    if folder is None or model.resolve().parent not in {
        place.resolve() for place in places(folder)
    }:
        return False
    path = model.resolve().relative_to(folder.resolve()).as_posix()
    file = RecordedFile(path, file_sha256(model), size=model.stat().st_size)
    record = ModelRecord(
        name=f"udpipe/{model.stem}",
        backend="udpipe.v1",
        files=(file,),
        language=card.get("language"),
        treebank=card.get("treebank"),
        version=card.get("treebank_version"),
        licence=card.get("licence"),
        attribution=card.get("attribution"),
        source=card.get("command"),
        sha256=file.sha256,
        size=file.size,
        date=datetime.now(UTC).date().isoformat(),
    )
    with changed_records(folder) as records:
        records[record.name] = record
    return True


def _records(settings: Settings) -> dict[str, ModelRecord]:
    return read_records(settings.models_dir) if settings.models_dir is not None else {}


def _check(model: ModelFile) -> Verdict:
    try:
        identity = load_parser(model).identity
    except ParsebankError as error:
        return Verdict(model.name, problem=error.message)
    return Verdict(model.name, identity.fingerprint, compared=model.sha256 is not None)


def _missing(record: ModelRecord, settings: Settings) -> Verdict:
    folder = settings.models_dir or Path()
    gone = [file.path for file in record.files if not (folder / file.path).exists()]
    problem = (
        f"it is in the registry file, but {', '.join(gone) or 'no model'} is not there; pull it "
        f"again, or `parsebank models remove {record.name}`"
    )
    return Verdict(record.name, problem=problem)


def _full_name(name: str, known: list[str]) -> str:
    wanted = name.lower()
    for full in known:
        if wanted in (full.lower(), full.lower().partition("/")[2]):
            return full
    raise unknown_name("model", name, known, UnknownParserError)


def _removable(name: str, known: list[str]) -> str:
    try:
        return _full_name(name, known)
    except UnknownParserError:
        bundled = [model.name for model in models_in(bundled_models_dir(), BACKENDS)]
        full = _full_name(name, bundled) if name.lower() in _names(bundled) else None
        if full is None:
            raise
        raise ConflictError(
            f"{full} ships with Parsebank and cannot be removed; to use another model for its "
            "language, name it in PARSEBANK_PARSERS",
            name=full,
        ) from None


def _names(names: list[str]) -> set[str]:
    return {part for name in names for part in (name.lower(), name.lower().partition("/")[2])}


def _files(folder: Path, model: ModelFile | None, record: ModelRecord | None) -> set[Path]:
    """Everything that belongs to a model: its files, and the cards beside a single one."""
    recorded = {folder / file.path for file in record.files} if record is not None else set()
    files = recorded | (set(model.files) if model is not None else set())
    cards = {file.with_suffix(end) for file in files for end in (".json", ".md")}
    if len(files) == 1:
        files |= cards
    return {file for file in files if file.name != RESOURCES}


def _drop_empty(folder: Path, root: Path) -> None:
    """Remove folders that have become empty, below the models folder."""
    while folder != root and root in folder.parents and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
