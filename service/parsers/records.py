"""Records of the models of a folder: its file ``registry.json``, and cards.

``pull`` and ``train`` write ``registry.json``, which is also the list of a mirror's offers. Models
that were put into the folder by hand need no record; they may have a card beside the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from service.parsers.files import locked, read_file, read_object
from syntax.errors import ModelLoadError
from syntax.files import write_whole
from syntax.strict_json import parse_json

T = TypeVar("T")

FILE_NAME: Final = "registry.json"
FORMAT: Final = 1

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+/[\w.+-]+$")]


def _inside(path: str) -> str:
    if {".", ".."} & set(path.split("/")):
        raise ValueError("it leads out of the models folder")
    return path


Inside = Annotated[
    str, StringConstraints(pattern=r"^[\w.+-]+(/[\w.+-]+)*$"), AfterValidator(_inside)
]


@dataclass(frozen=True)
class RecordedFile:
    """One file of a model; its path is relative to the models folder."""

    path: Inside
    sha256: str | None = None
    md5: str | None = None
    size: StrictInt | None = None

    @property
    def has_checksum(self) -> bool:
        return bool(self.sha256 or self.md5)


@dataclass(frozen=True)
class ModelRecord:
    """A model that is there, or one that can be fetched.

    Attributes:
        name, backend: Such as ``udpipe/french-partut-ud-2.5-191206`` and ``udpipe.v1``.
        language: ISO code.
        version: Release of the model or its treebank.
        attribution: Whom to name.
        source: A URL, a folder, or the command that trained it.
        sha256: `service.parsers.registry.checksum`.
        size: Bytes of all its files.
        date: Day it was put there, UTC.
        resources: Its part of Stanza's ``resources.json``, for a Stanza package.
    """

    name: Name
    backend: str
    files: Annotated[tuple[RecordedFile, ...], Field(min_length=1)]
    language: str | None = None
    treebank: str | None = None
    version: str | None = None
    licence: str | None = None
    attribution: str | None = None
    source: str | None = None
    sha256: str | None = None
    size: StrictInt | None = None
    date: str | None = None
    resources: dict[str, Any] | None = field(default=None, hash=False)

    @property
    def facts(self) -> dict[str, Any]:
        other = ("name", "backend", "files", "resources")
        return {key: value for key, value in _given(vars(self).items()).items() if key not in other}


class _Registry(BaseModel):
    """Content of ``registry.json``; its records share ``common``."""

    # Built at the first use, as `_adapter`: processes that parse read no records.
    model_config = ConfigDict(defer_build=True)

    format: Literal[1]
    common: dict[str, Any] = {}
    models: dict[str, dict[str, Any]]


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    """Checks what is read; the dataclasses check nothing, for what we make ourselves is right."""
    return TypeAdapter(kind)


def model_card(path: Path) -> dict[str, Any]:
    card = read_object(path)
    for key in ("language", "treebank", "treebank_version", "version", "licence", "sha256"):
        if not isinstance(card.get(key), str | None):
            raise ModelLoadError(
                f"the model card {path} gives {card[key]!r} as {key}; a text is expected",
                path=str(path),
            )
    return card


def card_las(card: Mapping[str, Any]) -> float | None:
    """LAS of running text on the test set, of the first treebank if there are several."""
    scores = card.get("scores")
    if isinstance(scores, dict) and "test" not in scores:
        scores = next(iter(scores.values()), None)
    for key in ("test", "raw", "LAS"):
        scores = scores.get(key) if isinstance(scores, dict) else None
    return scores if isinstance(scores, int | float) else None


def read_records(folder: Path) -> dict[str, ModelRecord]:
    """Records by name; empty if there are none. Refuses a newer format."""
    path = folder / FILE_NAME
    try:
        text = read_file(path)
    except (ModelLoadError, UnicodeDecodeError) as error:
        raise _unreadable(str(path), str(error)) from None
    return {} if text is None else parse_records(text, str(path))


def parse_records(text: str, where: str) -> dict[str, ModelRecord]:
    """Read records from JSON; ``where`` it came from appears in errors.

    Paths that lead out of the models folder are refused, because the text may be another
    machine's. Fields of a later release are left out.
    """
    place: tuple[str, ...] = ()
    try:
        registry = _Registry.model_validate(parse_json(text))
        records = {}
        for name, entry in registry.models.items():
            place = (name,)
            given = {**registry.common, **entry, "name": name}
            records[name] = _adapter(ModelRecord).validate_python(given)
    except ValueError as error:
        raise _unreadable(where, _fault(error, place)) from None
    return records


def recorded_file(entry: Any, where: str) -> RecordedFile:
    try:
        found: RecordedFile = _adapter(RecordedFile).validate_python(entry)
    except ValueError as error:
        raise _unreadable(where, _fault(error)) from None
    return found


def _fault(error: ValueError, place: tuple[str, ...] = ()) -> str:
    """Fault and its place: ``udpipe/x files 0 path is '/x': …``."""
    if not isinstance(error, ValidationError):
        return f"it is not JSON ({error})"
    fault = error.errors(include_url=False)[0]
    found = " ".join(map(str, (*place, *fault["loc"])))
    return f"{found or 'it'} is {fault['input']!r}: {fault['msg']}"


@contextmanager
def changed_records(folder: Path) -> Iterator[dict[str, ModelRecord]]:
    """Records for one process to change, written when the block ends without an error."""
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
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_whole(folder / FILE_NAME, f"{text}\n".encode())


def _given(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in fields if value is not None}


def _unreadable(where: str, why: str) -> ModelLoadError:
    return ModelLoadError(
        f"the registry of models {where} cannot be used: {why}. Mend or delete it; models without "
        "a record still work",
        path=where,
    )
