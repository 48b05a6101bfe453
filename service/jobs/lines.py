"""The lines of a backfill upload: one JSON object each, checked before anything is accepted.

A line that breaks the format costs the upload, because its sender is mistaken. A text that cannot
be parsed, or that its tags and spans do not fit, costs its example (a drop with a reason).
`sort_lines` finds the former of these; the parser and the labels tell the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from service.jobs.schemas import FORMS, BackfillSpec, check_spec
from syntax.errors import ExampleError, InputError, ParsebankError, SpecError
from syntax.examples import (
    DatasetSpec,
    Example,
    LabelSpec,
    LabelValue,
    Rejection,
    Segment,
    SpanLabel,
)
from syntax.fingerprint import Fingerprint
from syntax.labels import LARGEST_FLOAT
from syntax.reasons import DROP_REASONS, drop_reason
from syntax.strict_json import parse_json
from syntax.trees.conllu import parse_conllu, parse_from_sentences

Item = Example | Rejection

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
    check_spec(spec, name)
    return spec


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, f['loc'])) or 'it'}: {f['msg']}" for f in faults)


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
        repeats: Those equal to an earlier line, whose fate they share: they need no row of their
            own.
        rejected: Those that cannot be used, as far as is known without a parser.
        already_stored: How many the dataset holds.
        already_parsed: How many segments these have.
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

    Args:
        lines: Each with its content, whether the dataset holds it, and whether an equal one came
            before.
        key: `Analyser.key`.
    """
    # Premises and passages come many times in a row.
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
    """An example that cannot be used, and why."""
    return Rejection(example.example_id, drop_reason(error), error.message)


_ESCAPED_LETTER: Final = re.compile(r"\\u00[3-7]")
"""JSON may escape ASCII letters and digits too, though it is rare."""

_FIRST_TOKEN: Final = re.compile(r"^\d+(?:-\d+)?\t(\S+)", re.MULTILINE)


class TextFinder:
    """Tells of checked lines whether a segment's parse has one text.

    Args:
        text: Text of the parse: that of the segment, its tokens joined by spaces, or what its
            CoNLL-U comes to.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        # Longest first: it is the rarest.
        self._words = sorted(set(re.findall(r"\w+", text)), key=len, reverse=True)
        self._plain = [word for word in self._words if word.isascii()]

    def is_in(self, body: str) -> bool:
        """Whether the line has the text."""
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
            return self._begins(conllu) and self._text == _gold_text(conllu)
        text = segment.get("text")
        return self._text == (text if text is not None else " ".join(segment.get("tokens") or ()))

    def _begins(self, conllu: str) -> bool:
        """Whether the text begins as the first token does; to read all of them takes long."""
        token = _FIRST_TOKEN.search(conllu)
        return token is None or self._text.lstrip().startswith(token[1])


def _gold_text(conllu: str) -> str | None:
    try:
        return parse_from_sentences(list(parse_conllu(conllu))).text
    except ParsebankError:
        return None
