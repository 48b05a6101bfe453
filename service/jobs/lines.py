"""The lines of a backfill upload: one JSON object each, checked before anything is accepted.

A line that breaks the format costs the upload, because its sender is mistaken. A text that cannot
be parsed, or that its tags and spans do not fit, costs its example (a drop with a reason).
`sort_lines` finds the former of these; the parser and the labels tell the rest.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from service.jobs.schemas import BackfillSpec, LabelColumn
from syntax.errors import ExampleError, InputError, ParsebankError, SpecError
from syntax.examples import (
    DatasetSpec,
    Example,
    LabelSpec,
    LabelValue,
    Mode,
    Rejection,
    Segment,
    SpanLabel,
)
from syntax.fingerprint import Fingerprint
from syntax.labels import LARGEST_FLOAT
from syntax.reasons import DROP_REASONS, drop_reason
from syntax.strict_json import parse_json

Item = Example | Rejection

FORMS: Mapping[Mode, str] = {
    "raw": "text",
    "sentence": "text",
    "pretokenized": "tokens",
    "retokenize": "tokens",
    "tokens_mwt": "tokens",
    "gold": "conllu",
}
"""Which form of a segment each mode reads."""

_EXPECTED = 'expected {"example": {...}} or {"rejected": {...}}'


async def numbered_lines(
    chunks: AsyncIterable[bytes], max_bytes: int
) -> AsyncGenerator[tuple[int, bytes], None]:
    """The lines that are not blank, with their 1-based numbers, however the chunks are cut.

    Raises:
        ExampleError: A line is longer than ``max_bytes``.
    """
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
    """The specification on the first line.

    Raises:
        SpecError: The line is not a valid specification, or names another dataset than ``name``.
    """
    try:
        content = _object(line)
        if set(content) != {"spec"}:
            raise ValueError(f"it has the keys {sorted(content)}")
        spec = BackfillSpec.model_validate(content["spec"])
    except ValidationError as error:
        raise SpecError(f"line 1, the spec: {_faults(error)}", line=1) from None
    except ValueError as error:
        raise SpecError(
            f'line 1 must be {{"spec": {{...}}}}; {error}', line=1, expected="spec"
        ) from None
    _check_spec(spec, name)
    for label in spec.labels:
        _check_names(label)
        _check_field(label, spec)
    return spec


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, f['loc'])) or 'it'}: {f['msg']}" for f in faults)


def _check_spec(spec: BackfillSpec, name: str) -> None:
    labels = [label.name for label in spec.labels]
    if spec.name not in (None, name):
        raise SpecError(
            f"the spec names the dataset {spec.name!r}, the path {name!r}; name one", line=1
        )
    for kind, names in (("field", spec.fields), ("label", labels)):
        if len(set(names)) < len(names):
            raise SpecError(f"line 1: two {kind}s have one name: {', '.join(names)}", line=1)
    if spec.mode == "gold" and spec.long_sentences != "refuse":
        raise SpecError("line 1: mode 'gold' takes sentences as they are; it splits none", line=1)


def _check_names(label: LabelColumn) -> None:
    fits = label.kind == "spans" or bool(label.names) == (label.kind in ("class", "tags"))
    if not fits or len(set(label.names)) < len(label.names):
        raise SpecError(
            f"line 1: label {label.name!r} of kind {label.kind!r} has the names {label.names}; "
            "class and tags need their closed list, without repeats, spans may have one, the other "
            "kinds take none",
            line=1,
        )


def _check_field(label: LabelColumn, spec: BackfillSpec) -> None:
    local = label.kind in ("tags", "spans")
    if label.field is not None and not (local and label.field in spec.fields):
        raise SpecError(
            f"line 1: label {label.name!r} of kind {label.kind!r} has the field {label.field!r}; "
            f"tags and spans may have one of {', '.join(spec.fields)}, the other kinds take none",
            line=1,
        )
    if label.kind == "tags" and FORMS[spec.mode] == "text":
        raise SpecError(
            f"line 1: label {label.name!r} has a tag for each token, and mode {spec.mode!r} reads "
            "running text; send tokens, with mode 'pretokenized', 'retokenize' or "
            "'tokens_mwt'",
            line=1,
        )


def read_item(line: bytes | str, dataset: DatasetSpec) -> Item:
    """One example or rejection.

    Raises:
        ExampleError: The line is not one, or does not fit the dataset's specification.
    """
    try:
        content = _object(line)
        if set(content) == {"example"}:
            return _example(
                _fields(content["example"], "example_id", "segments", "labels"), dataset
            )
        if set(content) == {"rejected"}:
            return _rejection(_fields(content["rejected"], "example_id", "reason", "message"))
        raise ValueError(f"it has the keys {sorted(content)}")
    except ValueError as error:
        raise ExampleError(f"{error}; {_EXPECTED}") from None


def item_key(item: Item, *identity: str) -> Fingerprint:
    """Fingerprint of an item and of everything that its row depends on.

    Equal items with equal parser, tokenizer and mode have one key, so that a backfill
    that is sent again finds its rows.

    Args:
        item: The example or rejection.
        identity: `JobRequest.item_identity`.
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


def _object(line: bytes | str) -> dict[str, Any]:
    content = parse_json(line, allow_nan=False)
    if not isinstance(content, dict):
        raise ValueError(f"it is a JSON {type(content).__name__}")
    return content


def _fields(content: Any, *known: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"the value is a JSON {type(content).__name__}, not an object")
    unknown = set(content) - set(known)
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}; known are {', '.join(known)}")
    return content


def _example(content: dict[str, Any], dataset: DatasetSpec) -> Example:
    segments, labels = content.get("segments"), content.get("labels", {})
    if not isinstance(segments, list) or len(segments) != len(dataset.fields):
        count = len(segments) if isinstance(segments, list) else 0
        raise ValueError(
            f"{count} segments; the spec's fields want {len(dataset.fields)}: "
            f"{', '.join(dataset.fields)}"
        )
    if not isinstance(labels, dict):
        raise ValueError(f"labels is a JSON {type(labels).__name__}, not an object")
    return Example(
        example_id=_storable(content, "example_id"),
        segments=tuple(_segment(segment, FORMS[dataset.mode]) for segment in segments),
        labels=_labels(labels, dataset.labels),
    )


def _rejection(content: dict[str, Any]) -> Rejection:
    reason = _storable(content, "reason")
    message = _storable(content, "message", may_be_empty=True)
    if reason not in DROP_REASONS:
        reason, message = ExampleError.error_type, f"{reason}: {message}"
    return Rejection(_storable(content, "example_id"), reason, message)


def _storable(content: Mapping[str, Any], key: str, *, may_be_empty: bool = False) -> str:
    return _storable_value(content.get(key), key, may_be_empty=may_be_empty)


def _storable_value(value: Any, name: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or may_be_empty):
        raise ValueError(f"{name} is {reprlib.repr(value)}; it must be a string that is not empty")
    if not _is_utf8(value):
        raise ValueError(f"{name} holds a lone surrogate, which UTF-8 cannot carry")
    return value


def _is_utf8(value: str) -> bool:
    return value.isascii() or value == value.encode("utf-8", "ignore").decode("utf-8")


def _segment(content: Any, form: str) -> Segment:
    value = _fields(content, form).get(form)
    if form == "tokens":
        if not isinstance(value, list) or not all(isinstance(token, str) for token in value):
            raise ValueError("tokens must be a list of strings")
        return Segment(tokens=tuple(value))
    if not isinstance(value, str):
        raise ValueError(f"{form} must be a string")
    return Segment(text=value) if form == "text" else Segment(conllu=value)


def _labels(labels: Mapping[str, Any], specs: Sequence[LabelSpec]) -> dict[str, LabelValue | None]:
    known = [spec.name for spec in specs]
    if set(labels) != set(known):
        raise ValueError(
            f"labels {sorted(labels)} came; the spec has {sorted(known)}: give each, null where "
            "there is none"
        )
    return {spec.name: _label(labels, spec) for spec in specs}


def _label(labels: Mapping[str, Any], spec: LabelSpec) -> LabelValue | None:
    value = labels[spec.name]
    if value is None:
        return None
    if spec.kind in ("tags", "spans"):
        return _listed(spec, value)
    if spec.kind == "float":
        return _finite(spec.name, value)
    if spec.kind == "class" and value not in spec.names:
        raise ValueError(
            f"label {spec.name} is {reprlib.repr(value)}; expected one of {', '.join(spec.names)}"
        )
    return _storable(labels, spec.name, may_be_empty=True)


def _listed(spec: LabelSpec, values: Any) -> LabelValue:
    if not isinstance(values, list):
        raise ValueError(f"label {spec.name} is {reprlib.repr(values)}; expected a list")
    if spec.kind == "tags":
        return tuple(
            _storable_value(value, f"tag {at} of label {spec.name}")
            for at, value in enumerate(values)
        )
    return tuple(_span(value, f"span {at} of label {spec.name}") for at, value in enumerate(values))


def _span(content: Any, name: str) -> SpanLabel:
    value = _fields(content, *SpanLabel._fields)
    start, end = (value.get(key) for key in ("start_char", "end_char"))
    if type(start) is not int or type(end) is not int:
        raise ValueError(
            f"{name} goes from {reprlib.repr(start)} to {reprlib.repr(end)}; start_char and "
            "end_char must be integers"
        )
    return SpanLabel(start, end, _storable({"label": "", **value}, "label", may_be_empty=True))


def _finite(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"label {name} is {reprlib.repr(value)}; expected a number")
    if not abs(value) <= LARGEST_FLOAT:
        raise ValueError(
            f"label {name} is {reprlib.repr(value)}, which is no finite number in 32 bits"
        )
    return float(value)


KEPT_KEYS: Final = 1_024
"""Segments whose key is remembered within a shard."""

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
        rejected: Those that cannot be used, as far as is known without a parser.
        already_stored: How many the dataset holds, or came before.
        already_parsed: How many segments these have.
    """

    works: list[Work[Line]] = field(default_factory=list)
    rejected: list[tuple[Line, Rejection]] = field(default_factory=list)
    already_stored: int = 0
    already_parsed: int = 0


def sort_lines(
    lines: Iterable[tuple[Line, Item, bool]], key: Callable[[Segment], str]
) -> SortedLines[Line]:
    """Sort lines, as shards and forecasts do.

    Args:
        lines: Each with its content, and whether it came before or the dataset holds it.
        key: `Analyser.key`.
    """
    # Premises and passages come many times in a row.
    key = lru_cache(maxsize=KEPT_KEYS)(key)
    found = SortedLines[Line]()
    for line, item, is_stored in lines:
        if isinstance(item, Rejection):
            found.rejected.append((line, item))
        elif is_stored:
            found.already_stored += 1
            found.already_parsed += len(item.segments)
        else:
            try:
                found.works.append(Work(line, item, tuple(map(key, item.segments))))
            except InputError as error:
                found.rejected.append((line, rejection_of(item, error)))
    return found


def rejection_of(example: Example, error: ParsebankError) -> Rejection:
    """An example that cannot be used, and why."""
    return Rejection(example.example_id, drop_reason(error), error.message)
