"""mTOP: intent and slots of what people say to an assistant, in six languages."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from clients.benchmarks.base import Benchmark, Item, Part, attempt, named_parts, register
from clients.benchmarks.lines import Line, numbered_lines
from clients.benchmarks.slots import FIELDS, LABELS, MODES, REJECTS, slot_names, utterance
from syntax.errors import ExampleError, LabelError
from syntax.examples import Example, Mode, SpanLabel
from syntax.strict_json import parse_json

COLUMNS: Final = (
    *("id", "intent", "slots", "utterance"),
    *("domain", "locale", "decoupled form", "tokens"),
)


class Token(NamedTuple):
    """A token and its characters, in the unit that the slots count in."""

    form: str
    start: int
    end: int


def _find(folder: Path) -> list[Part]:
    parts = named_parts(folder, patterns=(r"(?P<lang>\w+)/(?P<split>train|eval|test)\.txt",))
    return [replace(part, split="dev") if part.split == "eval" else part for part in parts]


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    for line in numbered_lines(path):
        yield attempt(f"{part.split}-{line.first_field()}", _example, line)


def _example(example_id: str, line: Line) -> Example:
    where = line.where
    _, intent, slots, *_, tokens = line.fields(COLUMNS)
    forms = _tokens(tokens, where)
    tags = span_tags(forms, _slots(slots, where), where)
    return utterance(
        example_id, [token.form for token in forms], tags, intent.removeprefix("IN:"), where
    )


def _slots(column: str, where: str) -> list[SpanLabel]:
    """Spans of ``4:20:SL:CONTACT,21:26:SL:TYPE_CONTENT``."""
    try:
        return [_slot(slot) for slot in column.split(",") if slot]
    except ValueError:
        raise LabelError(
            f"{where}: slots {column!r}; expected start:end:SL:NAME, divided by commas"
        ) from None


def _slot(slot: str) -> SpanLabel:
    start, end, _, name = slot.split(":")
    return SpanLabel(int(start), int(end), name)


def _tokens(column: str, where: str) -> list[Token]:
    """Tokens of the last column, JSON or (in some copies) a Python literal."""
    try:
        record = _literal(column)
        spans = [(span["start"], span["start"] + span["length"]) for span in record["tokenSpans"]]
        return [Token(form, *span) for form, span in zip(record["tokens"], spans, strict=True)]
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError):
        raise ExampleError(
            f"{where}: the last column holds no tokens; expected JSON with tokens and tokenSpans, "
            "each span with start and length"
        ) from None


def _literal(column: str) -> Any:
    try:
        return parse_json(column)
    except ValueError:
        return ast.literal_eval(column)


def span_tags(tokens: Sequence[Token], slots: Sequence[SpanLabel], where: str) -> list[str]:
    """Tag ``B`` the first token that a slot touches, and ``I`` its others.

    Syntax-MBERT's release loses the slots that begin inside a token; here none is lost.
    """
    tags = ["O"] * len(tokens)
    for slot in slots:
        inside = [
            at
            for at, token in enumerate(tokens)
            if token.start < slot.end_char and slot.start_char < token.end
        ]
        if not inside or any(tags[at] != "O" for at in inside):
            raise LabelError(
                f"{where}: slot {slot.start_char}:{slot.end_char} {slot.label} covers "
                f"{'a token of another slot' if inside else 'no token'}"
            )
        for at in inside:
            tags[at] = f"{'B' if at == inside[0] else 'I'}-{slot.label}"
    return tags


MTOP: Final = register(
    Benchmark(
        name="mtop",
        fields=FIELDS,
        labels=LABELS,
        modes=MODES,
        layout="a .txt file, or a folder of files {lang}/{split}.txt, such as de/eval.txt",
        source="Li et al. 2021, MTOP: A Comprehensive Multilingual Task-Oriented Parsing Benchmark",
        licence="CC BY-SA",
        find=_find,
        read_part=_read,
        ids="{split}-{id of the file}; the same utterance has the same id in every language",
        rejects=REJECTS,
        langs=("de", "en", "es", "fr", "hi", "th"),
        quirks=(
            "eval is dev",
            "slots are spans of characters; they become tags of the tokens that they touch",
            "the tokens are those of the last column; IN: and SL: are left out of the names",
            "intents and slots are those of all splits and languages together",
        ),
        names_in=partial(slot_names, read_part=_read),
    )
)
