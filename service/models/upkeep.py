"""Check and remove the models of a folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from service.models.stanza import drop_resources
from service.parsers.discovery import models_in
from service.parsers.records import changed_records, read_records
from service.parsers.registry import BACKENDS, bundled_models_dir, list_models, load_parser
from service.parsers.stanza.packages import RESOURCES
from service.settings import Settings
from syntax.errors import ConflictError, ParsebankError, UnknownParserError
from syntax.registry import unknown_name


@dataclass(frozen=True)
class Verdict:
    """Result of checking a model, ``compared`` with a checksum if one was recorded."""

    name: str
    fingerprint: str | None = None
    compared: bool = False
    problem: str | None = None


def verify(settings: Settings, names: list[str]) -> list[Verdict]:
    """Check all models, or those named in full."""
    folder = settings.models_dir
    models = {model.name: model for model in list_models(settings)}
    records = read_records(folder) if folder is not None else {}
    missing = [name for name in records if name not in models]
    chosen = {_full_name(name, [*models, *missing]) for name in names} or {*models, *missing}
    verdicts = []
    for name in missing:
        if name in chosen and folder is not None:
            gone = [file.path for file in records[name].files if not (folder / file.path).exists()]
            problem = (
                f"it is in the registry file, but {', '.join(gone) or 'no model'} is not there; "
                f"pull it again, or `parsebank models remove {name}`"
            )
            verdicts.append(Verdict(name, problem=problem))
    for name, model in models.items():
        if name in chosen:
            try:
                fingerprint = load_parser(model).identity.fingerprint
                verdicts.append(Verdict(name, fingerprint, compared=model.sha256 is not None))
            except ParsebankError as error:
                verdicts.append(Verdict(name, problem=error.message))
    return verdicts


def remove(models_dir: Path, name: str) -> list[Path]:
    """Delete a model's files, but no file of another model; returns their paths."""
    with changed_records(models_dir) as records:
        models = {model.name: model for model in models_in(models_dir, BACKENDS)}
        bundled = [model.name for model in models_in(bundled_models_dir(), BACKENDS)]
        full = _full_name(name, dict.fromkeys([*models, *records]), bundled)
        model, record = models.pop(full, None), records.pop(full, None)
        files = {models_dir / file.path for file in record.files} if record is not None else set()
        files |= set(model.files) if model is not None else set()
        if len(files) == 1:
            files |= {file.with_suffix(end) for file in files for end in (".json", ".md")}
        if record is not None:
            drop_resources(models_dir, record)
        files -= {file for other in models.values() for file in other.files}
        doomed = sorted(file for file in files if file.name != RESOURCES and file.exists())
        for file in doomed:
            file.unlink()
            folder = file.parent
            while models_dir in folder.parents and not any(folder.iterdir()):
                folder.rmdir()
                folder = folder.parent
    return doomed


def _full_name(name: str, known: Iterable[str], bundled: Iterable[str] = ()) -> str:
    def is_meant(full: str) -> bool:
        return name.lower() in (full.lower(), full.lower().partition("/")[2])

    if (full := next(filter(is_meant, known), None)) is not None:
        return full
    if (full := next(filter(is_meant, bundled), None)) is not None:
        raise ConflictError(
            f"{full} ships with Parsebank and cannot be removed; to use another model for its "
            "language, name it in PARSEBANK_PARSERS",
            name=full,
        )
    raise unknown_name("model", name, known, UnknownParserError)
