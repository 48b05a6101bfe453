"""What is recorded about the models of a folder: in its file ``registry.json``, and in cards.

``pull`` and ``train`` write ``registry.json``; a served models folder is read by others as the list
of what it offers. Models that were put into the folder by hand need no record; they may have a
card, a JSON file beside the model.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from service.parsers.files import read_file
from syntax.errors import ModelLoadError
from syntax.strict_json import parse_json

FILE_NAME: Final = "registry.json"
FORMAT: Final = 1

_NAME: Final = re.compile(r"[a-z0-9]+/[\w.+-]+")
_PATH: Final = re.compile(r"[\w.+-]+(/[\w.+-]+)*")


@dataclass(frozen=True)
class RecordedFile:
    """One file of a model.

    Attributes:
        path: Relative to the models folder, with ``/``.
        sha256: Checksum, where known.
        md5: Checksum of a source that gives no better one.
        size: Bytes, where known.
    """

    path: str
    sha256: str | None = None
    md5: str | None = None
    size: int | None = None

    @property
    def has_checksum(self) -> bool:
        """Whether it is known what the file must be."""
        return bool(self.sha256 or self.md5)


@dataclass(frozen=True)
class ModelRecord:
    """What is recorded about a model, or known about one that can be fetched.

    Attributes:
        name: As callers ask for it, ``udpipe/french-partut-ud-2.5-191206``.
        backend: Registered name of its backend, ``udpipe.v1``.
        language: ISO code.
        treebank: What it was trained from.
        version: Release of the model or its treebank.
        attribution: Whom to name.
        source: Where it came from: a URL, a folder, or the command that trained it.
        sha256: Its checksum (`service.parsers.registry.checksum`).
        size: Bytes of all its files.
        date: Day it was put there, UTC.
        resources: What Stanza's ``resources.json`` says about it, for a Stanza package.
    """

    name: str
    backend: str
    files: tuple[RecordedFile, ...]
    language: str | None = None
    treebank: str | None = None
    version: str | None = None
    licence: str | None = None
    attribution: str | None = None
    source: str | None = None
    sha256: str | None = None
    size: int | None = None
    date: str | None = None
    resources: dict[str, Any] | None = field(default=None, hash=False)

    @property
    def facts(self) -> dict[str, Any]:
        """What a card would say: everything known but the files."""
        given = {key: getattr(self, key) for key in _FACTS}
        return {key: value for key, value in given.items() if value is not None}


_FACTS: Final = (
    *("language", "treebank", "version", "licence", "attribution"),
    *("source", "sha256", "size", "date"),
)


def model_card(path: Path) -> dict[str, Any]:
    """The content of a card; empty if there is none.

    Raises:
        ModelLoadError: It is no JSON object, or what it says of the model is no text.
    """
    try:
        text = read_file(path)
        card = {} if text is None else parse_json(text)
    except ValueError as error:
        raise ModelLoadError(
            f"the model card {path} is not JSON: {error}", path=str(path)
        ) from None
    if not isinstance(card, dict):
        raise ModelLoadError(f"the model card {path} is not a JSON object", path=str(path))
    for key in ("language", "treebank", "treebank_version", "version", "licence", "sha256"):
        if not isinstance(card.get(key), str | None):
            raise ModelLoadError(
                f"the model card {path} gives {card[key]!r} as {key}; a text is expected",
                path=str(path),
            )
    return card


def read_records(folder: Path) -> dict[str, ModelRecord]:
    """The records of a models folder by name; empty if it has none.

    Raises:
        ModelLoadError: The file cannot be read, or is of a format that this release does not know.
    """
    path = folder / FILE_NAME
    try:
        text = read_file(path)
    except (ModelLoadError, UnicodeDecodeError) as error:
        raise _unreadable(str(path), str(error)) from None
    return {} if text is None else parse_records(text, str(path))


def parse_records(text: str, where: str) -> dict[str, ModelRecord]:
    """Read records from JSON; ``where`` it came from appears in errors.

    Paths that lead out of the models folder are refused: the text may be another machine's.

    Raises:
        ModelLoadError: It is not what `write_records` writes.
    """
    try:
        content = parse_json(text)
    except ValueError as error:
        raise _unreadable(where, f"it is not JSON ({error})") from None
    if not isinstance(content, dict) or not isinstance(content.get("models"), dict):
        raise _unreadable(where, 'it has no object "models"')
    if content.get("format") != FORMAT:
        raise _unreadable(where, f"its format is {content.get('format')!r}, not {FORMAT}")
    common = content.get("common", {})
    if not isinstance(common, dict):
        raise _unreadable(where, '"common" is no object')
    records = {}
    for name, entry in content["models"].items():
        if not _NAME.fullmatch(name) or not isinstance(entry, dict):
            raise _unreadable(where, f"{name!r} is no model name with an object")
        given = {**common, **entry, "name": name}
        listed = entry.get("files")
        if not isinstance(given.get("backend"), str) or not isinstance(listed, list) or not listed:
            raise _unreadable(where, f"{name!r} lacks backend or files")
        given["files"] = tuple(recorded_file(file, where) for file in listed)
        records[name] = ModelRecord(**_known(ModelRecord, given, where, repr(name)))
    return records


def recorded_file(entry: Any, where: str) -> RecordedFile:
    """Read one file's record.

    Raises:
        ModelLoadError: Its path leads out of the models folder.
    """
    path = entry.get("path") if isinstance(entry, dict) else None
    if (
        not isinstance(path, str)
        or not _PATH.fullmatch(path)
        or {".", ".."} & set(PurePosixPath(path).parts)
    ):
        raise _unreadable(where, f"{path!r} is no path within the models folder")
    return RecordedFile(**_known(RecordedFile, entry, where, repr(path)))


def _known(
    kind: type[RecordedFile | ModelRecord], given: Mapping[str, Any], where: str, what: str
) -> dict[str, Any]:
    """The given values for the fields of a record; others, of a later release, are left out."""
    known = {key: value for key, value in given.items() if key in kind.__dataclass_fields__}
    for key, value in known.items():
        expected = _TYPES.get(key, str)
        if not isinstance(value, expected | None):
            raise _unreadable(where, f"{key} of {what} is {value!r}, not {expected.__name__}")
    return known


_TYPES: Final[Mapping[str, type]] = {"size": int, "resources": dict, "files": tuple}
"""Of the fields of a record that are no texts."""


@contextmanager
def changed_records(folder: Path) -> Iterator[dict[str, ModelRecord]]:
    """The records for one process to change; they are written when the block ends well."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / f"{FILE_NAME}.lock"):
        records = read_records(folder)
        yield records
        write_records(folder, records)


def write_records(folder: Path, records: Mapping[str, ModelRecord]) -> None:
    """Write the whole file at once; a reader sees the old one or the new one."""
    models = {name: asdict(records[name], dict_factory=_given) for name in sorted(records)}
    for model in models.values():
        del model["name"]
    content = {"format": FORMAT, "models": models}
    write_whole(folder / FILE_NAME, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _given(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without what is unknown."""
    return {key: value for key, value in fields if value is not None}


def write_whole(path: Path, text: str) -> None:
    """Write a text file that is there either whole or not at all, even after a power cut."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file; it goes with the process that holds it, however that ends.

    Raises:
        BlockingIOError: Another process holds it and ``wait`` is false.
    """
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _unreadable(where: str, why: str) -> ModelLoadError:
    return ModelLoadError(
        f"the registry of models {where} cannot be used: {why}. Mend or delete it; models without "
        "a record still work",
        path=where,
    )
