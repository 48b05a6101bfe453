"""Fetch a model into a models folder: staged, tried, and only then put in its place.

A model comes into the hidden folder ``.pull``, which nothing searches. There it is checked and
loaded once; then its files are moved, each at once, and the registry file is rewritten. An
interrupted pull leaves the models unchanged and keeps the downloaded part.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from service.models.catalogue import Offer
from service.models.download import Downloader, matches
from service.models.stanza import add_resources
from service.parsers.base import ModelFile
from service.parsers.discovery import models_in
from service.parsers.files import locked
from service.parsers.records import ModelRecord, RecordedFile, changed_records, read_records
from service.parsers.registry import BACKENDS, checksum, load_parser
from syntax.errors import ConflictError, DownloadError, ParsebankError, without_passwords
from syntax.fingerprint import file_sha256

STAGING: Final = ".pull"


def is_there(offer: Offer, models_dir: Path) -> bool:
    record, offered = read_records(models_dir).get(offer.record.name), offer.record.files
    if record is None or [file.path for file in record.files] != [file.path for file in offered]:
        return False
    known = [*record.files, *(file for file in offered if file.has_checksum)]
    return all(matches(models_dir / file.path, file) for file in known)


def pull(
    offer: Offer,
    models_dir: Path,
    downloader: Downloader,
    *,
    check: bool = True,
    source: str | None = None,
) -> ModelRecord:
    """Fetch a model; returns its record, whose source is by default that of its files.

    Raises:
        ConflictError: Another process is fetching it, or the name is taken by a model that was
            put there by hand.
    """
    name = offer.record.name
    by_hand = None if name in read_records(models_dir) else _model(name, models_dir)
    if by_hand is not None:
        raise ConflictError(
            f"{name} is at {by_hand.path} already, put there by hand; remove it first "
            f"(`parsebank models remove {name}`)",
            name=name,
        )
    with _staging(models_dir, name) as stage:
        sources = [
            _bring(file, offer.sources(file), models_dir, stage, downloader)
            for file in offer.record.files
        ]
        came = [stage / file.path for file in offer.record.files]
        files = tuple(
            replace(file, sha256=file_sha256(path), size=path.stat().st_size)
            for file, path in zip(offer.record.files, came, strict=True)
        )
        add_resources(stage, offer.record)
        record = replace(
            offer.record,
            files=files,
            source=source or _common([without_passwords(url) for url in sources]),
            sha256=_tried(name, stage, load=check),
            size=sum(path.stat().st_size for path in came),
            date=datetime.now(UTC).date().isoformat(),
        )
        with changed_records(models_dir) as records:
            for file, path in zip(files, came, strict=True):
                target = models_dir / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
            add_resources(models_dir, record)
            records[name] = record
    return record


def _model(name: str, folder: Path) -> ModelFile | None:
    return next((model for model in models_in(folder, BACKENDS) if model.name == name), None)


@contextmanager
def _staging(models_dir: Path, name: str) -> Iterator[Path]:
    """Folder for new files, which is kept after a failure."""
    stage = models_dir / STAGING / name.replace("/", "_")
    stage.mkdir(parents=True, exist_ok=True)
    try:
        with locked(stage.with_name(f"{stage.name}.lock"), wait=False):
            yield stage
            shutil.rmtree(stage)
    except BlockingIOError:
        raise ConflictError(f"another process is fetching {name}; wait for it", name=name) from None


def _bring(
    file: RecordedFile, sources: list[str], models_dir: Path, stage: Path, downloader: Downloader
) -> str:
    """Bring a file into the staging folder, unless it is there or in the models folder."""
    target = stage / file.path
    if matches(target, file):
        return sources[0]
    if not matches(models_dir / file.path, file):
        return downloader.fetch(file, sources, stage)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(models_dir / file.path, target)
    except OSError:
        shutil.copyfile(models_dir / file.path, target)
    return sources[0]


def _tried(name: str, stage: Path, *, load: bool) -> str:
    model = _model(name, stage)
    if model is None:
        raise DownloadError(f"what came for {name} is no model that any backend finds", name=name)
    if load:
        try:
            load_parser(model, device="cpu")
        except ParsebankError as error:
            raise type(error)(
                f"{name} came, but cannot be loaded: {error.message}. Nothing was installed",
                **error.detail,
            ) from None
    return checksum(model)


def _common(sources: list[str]) -> str:
    if len(sources) == 1:
        return sources[0]
    common = os.path.commonprefix(sources)  # noqa: RUF071 - cut at a slash in the next line
    return common.rpartition("/")[0]
