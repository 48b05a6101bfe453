"""The lines of a backfill upload: one JSON object each, checked before anything is accepted.

A line that breaks the format costs the upload, because its sender is mistaken. A text that cannot
be parsed, or that its tags and spans do not fit, costs its example (a drop with a reason).
`sort_lines` finds the texts that no parser can read; the parser and the labels tell the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import CoreSchema, SchemaValidator
from pydantic_core import core_schema as cs

from service.jobs.schemas import FORMS, BackfillSpec, check_spec
from syntax.errors import (
    DROP_REASONS,
    ExampleError,
    InputError,
    ParsebankError,
    SpecError,
    drop_reason,
)
from syntax.examples import (
    DatasetSpec,
    Example,
    LabelSpec,
    Rejection,
    Segment,
    SpanLabel,
)
from syntax.fingerprint import Fingerprint
from syntax.labels import LARGEST_FLOAT
from syntax.strict_json import parse_json
from syntax.trees.conllu import parse_conllu, parse_from_sentences

Item = Example | Rejection


class SpecLine(BaseModel):
    """The first line of an upload."""

    model_config = ConfigDict(extra="forbid")

    spec: BackfillSpec


async def numbered_lines(
    chunks: AsyncIterable[bytes], max_bytes: int
) -> AsyncGenerator[tuple[int, bytes], None]:
    """The lines that are not blank, with 1-based numbers; `ExampleError` for too long ones."""
    number, rest = 0, bytearray()
    async for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *lines, rest = rest.split(b"\n")
            for line in lines:
                number += 1
                _reject_long(number, line, max_bytes)
                if line.strip():
                    yield number, bytes(line)
        _reject_long(number + 1, rest, max_bytes)
    if rest.strip():
        yield number + 1, bytes(rest)


def _reject_long(number: int, line: bytes | bytearray, max_bytes: int) -> None:
    if len(line) > max_bytes:
        raise ExampleError(
            f"line {number} has more than {max_bytes} bytes; split the text, or raise "
            "job_max_line_bytes",
            line=number,
        )


def read_spec(line: bytes, name: str) -> BackfillSpec:
    """The specification on the first line; `SpecError` if it is none or names another dataset."""
    try:
        spec = SpecLine.model_validate(parse_json(line, allow_nan=False)).spec
    except ValueError as error:
        raise SpecError(
            f'line 1 must be {{"spec": {{...}}}}; {_faults(error)}', line=1, expected="spec"
        ) from None
    check_spec(spec, name)
    return spec


def read_item(line: bytes | str, dataset: DatasetSpec) -> Item:
    """One example or rejection; `ExampleError` for a line that is neither, or does not fit."""
    try:
        content = _lines_of(dataset).validate_python(parse_json(line, allow_nan=False))
        if len(content) != 1:
            raise ValueError(f"it has the keys {sorted(content)}")
    except ValueError as error:
        raise ExampleError(
            f'{_faults(error)}; expected {{"example": {{...}}}} or {{"rejected": {{...}}}}'
        ) from None
    if example := content.get("example"):
        segments = tuple(Segment(**segment) for segment in example["segments"])
        return Example(example["example_id"], segments, example.get("labels", {}))
    rejected = Rejection(**content["rejected"])
    if rejected.reason in DROP_REASONS:
        return rejected
    message = f"{rejected.reason}: {rejected.message}"
    return Rejection(rejected.example_id, ExampleError.error_type, message)


_SHOWN_FAULTS: Final = 3


def _faults(error: ValueError) -> str:
    """The first faults of a line, each with its place, such as ``example.segments.0``."""
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'the line'}: {fault['msg']}"
        + ("" if fault["type"] == "missing" else f" (it is {reprlib.repr(fault['input'])})")
        for fault in error.errors(include_url=False)[:_SHOWN_FAULTS]
    )


@lru_cache(maxsize=64)
def _lines_of(dataset: DatasetSpec) -> SchemaValidator:
    """Reads a line after the first: an object with one of the keys ``example`` and ``rejected``.

    The texts of segments may hold what UTF-8 cannot carry: that drops the example, as other texts
    do that no parser can read.
    """
    form = FORMS[dataset.mode]
    text = cs.str_schema(strict=True)
    segment = _fields({form: _tuple(text) if form == "tokens" else text})
    count = len(dataset.fields)
    labels = {label.name: cs.nullable_schema(_label(label)) for label in dataset.labels}
    example = {
        "example_id": _NAME,
        "segments": cs.list_schema(segment, min_length=count, max_length=count),
        "labels": _fields(labels),
    }
    rejected = _fields({"example_id": _NAME, "reason": _NAME, "message": _STORABLE})
    line = {"example": _fields(example, *([] if labels else ["labels"])), "rejected": rejected}
    return SchemaValidator(_fields(line, *line))


def _fields(fields: Mapping[str, CoreSchema], *optional: str) -> CoreSchema:
    required = {
        name: cs.typed_dict_field(schema, required=name not in optional)
        for name, schema in fields.items()
    }
    return cs.typed_dict_schema(required, extra_behavior="forbid")


def _tuple(item: CoreSchema) -> CoreSchema:
    return cs.no_info_after_validator_function(tuple, cs.list_schema(item))


# With a limit of the length, lone surrogates are refused, which no table can hold.
_STORABLE: Final = cs.str_schema(strict=True, min_length=0)
_NAME: Final = cs.str_schema(strict=True, min_length=1)
_SPAN: Final = cs.no_info_after_validator_function(
    lambda span: SpanLabel(**span),
    _fields(
        {
            "start_char": cs.int_schema(strict=True),
            "end_char": cs.int_schema(strict=True),
            "label": _STORABLE,
        },
        "label",
    ),
)


def _label(spec: LabelSpec) -> CoreSchema:
    match spec.kind:
        case "class":
            return cs.chain_schema([_STORABLE, cs.literal_schema([*spec.names])])
        case "float":
            return cs.float_schema(strict=True, ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)
        case "string":
            return _STORABLE
        case "tags":
            return _tuple(_NAME)
        case "spans":
            return _tuple(_SPAN)


def item_key(item: Item, *identity: str) -> Fingerprint:
    """Fingerprint of an item and of everything that its row depends on.

    Equal items with equal parser, tokenizer and mode (`JobRequest.item_identity`) have one key, so
    that a backfill that is sent again finds its rows.
    """
    # Like `fingerprint`, but with ASCII escapes: texts may hold lone surrogates.
    content = _canonical(["example.v1", *identity, *_content(item)]).encode("ascii")
    return Fingerprint(hashlib.blake2b(content, digest_size=16).hexdigest())


_canonical: Final = json.JSONEncoder(sort_keys=True, allow_nan=False).encode


def _content(item: Item) -> list[Any]:
    if isinstance(item, Rejection):
        return ["rejected", item.example_id, item.reason, item.message]
    segments = [[segment.text, segment.tokens, segment.conllu] for segment in item.segments]
    return ["example", item.example_id, segments, dict(item.labels)]


KEPT_KEYS: Final = 1_024
"""Segments whose key is remembered: premises and passages come many times in a row."""

Line = TypeVar("Line")
"""A line of an upload: staged, or just read."""


@dataclass(frozen=True, slots=True)
class Work(Generic[Line]):
    """An example that needs a row, and the key of each segment's parse."""

    line: Line
    example: Example
    keys: tuple[str, ...]


@dataclass(slots=True)
class SortedLines(Generic[Line]):
    """Lines by what has to be done about them.

    Attributes:
        works: Those that need a row.
        repeats: Those equal to an earlier line; they share its fate, and need no row.
        rejected: Those that cannot be used, as far as is known without a parser.
        already_stored: Number of those that the dataset holds.
        already_parsed: Number of their segments.
    """

    works: list[Work[Line]] = field(default_factory=list)
    repeats: list[Work[Line]] = field(default_factory=list)
    rejected: list[tuple[Line, Rejection]] = field(default_factory=list)
    already_stored: int = 0
    already_parsed: int = 0


def sort_lines(
    lines: Iterable[tuple[Line, Item, bool, bool]], key: Callable[[Segment], str]
) -> SortedLines[Line]:
    """Sort lines, as shards and forecasts do.

    Each comes with its content, whether the dataset holds it, and whether an equal one came before.
    The key is `Analyser.key`.
    """
    key = lru_cache(maxsize=KEPT_KEYS)(key)
    found = SortedLines[Line]()
    for line, item, is_stored, is_repeat in lines:
        if isinstance(item, Rejection):
            found.rejected.append((line, item))
        elif is_stored:
            found.already_stored += 1
            found.already_parsed += len(item.segments)
        else:
            try:
                work = Work(line, item, tuple(map(key, item.segments)))
            except InputError as error:
                found.rejected.append((line, rejection_of(item, error)))
            else:
                (found.repeats if is_repeat else found.works).append(work)
    return found


def rejection_of(example: Example, error: ParsebankError) -> Rejection:
    return Rejection(example.example_id, drop_reason(error), error.message)


_ESCAPED_LETTER: Final = re.compile(r"\\u00[3-7]")
"""JSON may escape ASCII letters and digits too, though it is rare."""

_FIRST_TOKEN: Final = re.compile(r"^\d+(?:-\d+)?\t(\S+)", re.MULTILINE)


class TextFinder:
    """Finds the checked lines with a segment whose parse has one text.

    That is the segment's text, its tokens joined by spaces, or the text of its CoNLL-U.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        # Longest first: it is the rarest.
        self._words = sorted(set(re.findall(r"\w+", text)), key=len, reverse=True)
        self._plain = [word for word in self._words if word.isascii()]

    def is_in(self, body: str) -> bool:
        return self._may_be_in(body) and any(
            map(self._is_segment, parse_json(body).get("example", {}).get("segments", ()))
        )

    def _may_be_in(self, body: str) -> bool:
        if '"conllu"' in body or _ESCAPED_LETTER.search(body):
            return True
        words = self._plain if "\\" in body else self._words
        return all(word in body for word in words)

    def _is_segment(self, segment: dict[str, Any]) -> bool:
        conllu = segment.get("conllu")
        if conllu is not None:
            token = _FIRST_TOKEN.search(conllu)  # to read all of them takes long
            if token is not None and not self._text.lstrip().startswith(token[1]):
                return False
            try:
                return self._text == parse_from_sentences(list(parse_conllu(conllu))).text
            except ParsebankError:
                return False
        text = segment.get("text")
        return self._text == (text if text is not None else " ".join(segment.get("tokens") or ()))
