"""Fetch a model into a models folder: staged, tried, and only then put in its place.

A model comes into the hidden folder ``.pull`` of the models folder, which nothing searches. There
it is checked and loaded once; then its files are moved, each at once, and the registry file is
rewritten. An interrupted pull leaves the models unchanged and keeps the downloaded part.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from service.models.catalogue import Offer
from service.models.download import Downloader, Fetched, Wanted, file_md5
from service.models.stanza import add_resources
from service.parsers.base import ModelFile
from service.parsers.discovery import models_in
from service.parsers.records import (
    ModelRecord,
    RecordedFile,
    changed_records,
    locked,
    read_records,
)
from service.parsers.registry import BACKENDS, checksum, load_parser
from syntax.errors import ConflictError, DownloadError, ParsebankError, without_passwords
from syntax.fingerprint import file_sha256

STAGING: Final = ".pull"


@dataclass(frozen=True)
class Pulled:
    """What became of one model.

    Attributes:
        record: What is recorded about it now.
        outcome: ``pulled``, or ``there`` when it already was.
        checked: Whether the source gave a checksum for every file; otherwise the checksums of
            what came are trusted and recorded.
    """

    record: ModelRecord
    outcome: Literal["pulled", "there"]
    checked: bool


def pull(offer: Offer, models_dir: Path, downloader: Downloader, *, check: bool = True) -> Pulled:
    """Fetch a model, unless it is there and whole.

    Args:
        offer: What to fetch.
        models_dir: Folder to put it in.
        downloader: Fetches the files.
        check: Load the model once before it counts as pulled.

    Raises:
        DownloadError: A file cannot be had, or is not the one expected.
        ModelLoadError, MissingExtraError: What came cannot be loaded.
        ConflictError: Another process is fetching it, or the name is taken by a model that was
            put there by hand.
    """
    if (record := _is_there(offer.record, models_dir)) is not None:
        return Pulled(record, "there", checked=True)
    _refuse_shadowed(offer.record.name, models_dir)
    with _staging(models_dir, offer.record.name) as stage:
        fetched = [
            _bring(file, sources, models_dir, stage, downloader)
            for file, sources in zip(offer.record.files, offer.sources, strict=True)
        ]
        record = _filled_in(offer, fetched)
        add_resources(stage, record)
        model = _found(record.name, stage)
        if check:
            _load(model)
        record = replace(record, sha256=checksum(model))
        _install(record, stage, models_dir)
    return Pulled(record, "pulled", all(came.checked for came in fetched))


def _is_there(wanted: ModelRecord, models_dir: Path) -> ModelRecord | None:
    """The record of a model that is there, whole, and the one offered."""
    record = read_records(models_dir).get(wanted.name)
    if record is None or [file.path for file in record.files] != [f.path for f in wanted.files]:
        return None
    there = zip(record.files, wanted.files, strict=True)
    return record if all(_is_whole(models_dir, had, new) for had, new in there) else None


def _is_whole(models_dir: Path, had: RecordedFile, new: RecordedFile) -> bool:
    path = models_dir / had.path
    if not path.is_file() or file_sha256(path) != had.sha256:
        return False
    return new.sha256 in (None, had.sha256) and new.md5 in (None, file_md5(path))


def _refuse_shadowed(name: str, models_dir: Path) -> None:
    """A model put there by hand would hide the one that we fetch, or be overwritten by it."""
    if name in read_records(models_dir):
        return
    for model in models_in(models_dir, BACKENDS):
        if model.name == name:
            raise ConflictError(
                f"{name} is at {model.path} already, put there by hand; remove it first "
                f"(`parsebank models remove {name}`)",
                name=name,
            )


@contextmanager
def _staging(models_dir: Path, name: str) -> Iterator[Path]:
    """A folder for the files to come; kept when something fails, so that they need not again."""
    stage = models_dir / STAGING / name.replace("/", "_")
    stage.mkdir(parents=True, exist_ok=True)
    try:
        with locked(stage.with_name(f"{stage.name}.lock"), wait=False):
            yield stage
            shutil.rmtree(stage)
    except BlockingIOError:
        raise ConflictError(f"another process is fetching {name}; wait for it", name=name) from None


def _bring(
    file: RecordedFile,
    sources: tuple[str, ...],
    models_dir: Path,
    stage: Path,
    downloader: Downloader,
) -> Fetched:
    """A file into the staging folder: from an earlier try, another package, or the source."""
    target = stage / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    for there in (target, models_dir / file.path):
        if _is_expected(there, file):
            _link(there, target)
            return Fetched(sources[0], file_sha256(target), target.stat().st_size, checked=True)
    return downloader.fetch(Wanted(target, sources, file.sha256, file.md5))


def _is_expected(path: Path, file: RecordedFile) -> bool:
    """Whether a file is there that has the checksum we look for."""
    if not path.is_file() or (file.sha256 is None and file.md5 is None):
        return False
    return file.sha256 in (None, file_sha256(path)) and file.md5 in (None, file_md5(path))


def _link(there: Path, target: Path) -> None:
    if there != target:
        target.unlink(missing_ok=True)
        try:
            os.link(there, target)
        except OSError:
            shutil.copyfile(there, target)


def _filled_in(offer: Offer, fetched: list[Fetched]) -> ModelRecord:
    files = tuple(
        replace(file, sha256=came.sha256, size=came.size)
        for file, came in zip(offer.record.files, fetched, strict=True)
    )
    return replace(
        offer.record,
        files=files,
        source=_common([without_passwords(came.source) for came in fetched]),
        size=sum(came.size for came in fetched),
        date=datetime.now(UTC).date().isoformat(),
    )


def _common(sources: list[str]) -> str:
    """The one source, or the folder that all lie in."""
    if len(sources) == 1:
        return sources[0]
    common = os.path.commonprefix(sources)  # noqa: RUF071 - cut at a slash in the next line
    return common.rpartition("/")[0]


def _found(name: str, folder: Path) -> ModelFile:
    """The staged model, as the service will find it."""
    for model in models_in(folder, BACKENDS):
        if model.name == name:
            return model
    raise DownloadError(f"what came for {name} is no model that any backend finds", name=name)


def _load(model: ModelFile) -> None:
    try:
        load_parser(model, device="cpu")
    except ParsebankError as error:
        raise type(error)(
            f"{model.name} came, but cannot be loaded: {error.message}. Nothing was installed",
            **error.detail,
        ) from None


def _install(record: ModelRecord, stage: Path, models_dir: Path) -> None:
    with changed_records(models_dir) as records:
        for file in record.files:
            target = models_dir / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            (stage / file.path).replace(target)
        add_resources(models_dir, record)
        records[record.name] = record
