"""Extractive question answering in the format of SQuAD: a question, a passage, spans of it.

::

    {"data": [{"paragraphs": [{"context": "...", "qas": [
        {"id": "...", "question": "...", "answers": [{"text": "...", "answer_start": 17}]}]}]}]}

Offsets are code points of the passage as it stands in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from clients.benchmarks.base import Item, Part, attempt
from clients.benchmarks.documents import UniqueIds, guarded, records_of, text_of
from syntax.errors import ExampleError, InputError, LabelError
from syntax.examples import Example, LabelSpec, LabelValue, Mode, Segment, SpanLabel

FIELDS: Final = ("question", "passage")
MODES: Final[tuple[Mode, ...]] = ("raw", "sentence")
ANSWERS: Final = LabelSpec("answers", "spans", field="passage")

IDS: Final = "the question's own; a second question of the same id is `{id}#2`"
REJECTS: Final = {
    "example": "no question, passage or answers of the right form; what stands behind a break of "
    "the JSON",
    "label": "an answer that is not in the passage where it should be, nor once near by",
    "invalid_character": "bytes that are not UTF-8",
}
QUIRKS: Final = (
    "an answer that stands a few characters beside its offset is moved there (`answer_moved`)",
    "a file none of whose questions has an answer with text, or says that it has none, is blind: "
    "they are kept without label",
    "in another file, an answer without text is no span",
)

NEAR: Final = 50

ANSWER_MOVED: Final = "answer_moved"
"""Repair: an answer was found beside its offset."""

Answers = tuple[SpanLabel, ...]
Labels = dict[str, LabelValue | None]
Extra = Callable[[dict[str, Any], Answers | None, str], Labels]
"""More labels of a question's record, its answers (None in a blind file), and its name."""


def no_more(record: dict[str, Any], answers: Answers | None, where: str) -> Labels:  # noqa: ARG001
    return {}


def read_answers(
    part: Part,
    mode: Mode,  # noqa: ARG001
    *,
    extra: Extra = no_more,
    belongs: Callable[[Part, str], bool] = lambda *_: True,
) -> Iterator[Item]:
    unique = UniqueIds()
    for path in part.files:
        yield from guarded(path, _items(path, unique, extra, partial(belongs, part)))


def _items(
    path: Path, unique: UniqueIds, extra: Extra, belongs: Callable[[str], bool]
) -> Iterator[Item]:
    blind = not _has_labels(path)
    for where, paragraph, question in _questions(path):
        given = question.get("id") if isinstance(question, dict) else None
        name = None if given is None or isinstance(given, list | dict) else str(given)
        if name is None or belongs(name):
            example_id = unique.of(name or where)
            yield attempt(example_id, _example, paragraph, question, where, extra, blind)


def _has_labels(path: Path) -> bool:
    """True if an item has or denies an answer, or the file is faulty."""
    with suppress(InputError):
        return any(_is_labelled(question) for _, _, question in _questions(path))
    return True


def _is_labelled(question: Any) -> bool:
    if not isinstance(question, dict):
        return False
    answers = question.get("answers")
    known = answers if isinstance(answers, list) else []
    texts = [answer.get("text") for answer in known if isinstance(answer, dict)]
    return "is_impossible" in question or any(texts)


def _questions(path: Path) -> Iterator[tuple[str, Any, Any]]:
    for a, article in enumerate(records_of(path, "data.item")):
        for p, paragraph in enumerate(_list(article, "paragraphs")):
            for q, question in enumerate(_list(paragraph, "qas")):
                yield f"{path.name}, data[{a}].paragraphs[{p}].qas[{q}]", paragraph, question


def _list(record: Any, key: str) -> list[Any]:
    value = record.get(key) if isinstance(record, dict) else None
    return value if isinstance(value, list) else [None]


def _example(
    example_id: str, paragraph: Any, question: Any, where: str, extra: Extra, blind: bool
) -> Example:
    texts = text_of(question, "question", where), text_of(paragraph, "context", where)
    found = [located(texts[1], answer, where) for answer in _answers(question, where)]
    answers = None if blind else tuple(span for span, _ in found)
    return Example(
        example_id,
        tuple(Segment(text=text) for text in texts),
        {"answers": answers, **extra(question, answers, where)},
        repairs=tuple(ANSWER_MOVED for _, moved in found if moved),
    )


def _answers(question: dict[str, Any], where: str) -> list[tuple[int, str]]:
    answers = question.get("answers", [])
    try:
        pairs = [(answer["answer_start"], answer["text"]) for answer in answers]
    except (TypeError, KeyError):
        pairs = [(None, None)]
    if not all(type(start) is int and isinstance(text, str) for start, text in pairs):
        raise ExampleError(
            f"{where}: 'answers' is {answers!r}; expected a list of "
            '{"text": str, "answer_start": int}'
        )
    return [pair for pair in pairs if pair[1]]


def located(passage: str, answer: tuple[int, str], where: str) -> tuple[SpanLabel, bool]:
    """Span of an answer (offset and text); true if it was displaced and had to be searched for."""
    offset, text = answer
    if offset >= 0 and passage.startswith(text, offset):
        return SpanLabel(offset, offset + len(text)), False
    nearby = range(max(0, offset - NEAR), offset + NEAR + 1)
    starts = [start for start in nearby if passage.startswith(text, start)]
    if len(starts) != 1:
        raise LabelError(
            f"{where}: the answer {text!r} is not at character {offset}, where the passage has "
            f"{passage[max(0, offset) : max(0, offset) + len(text)]!r}, and stands {len(starts)} "
            f"times within {NEAR} characters of it; correct the offset"
        )
    return SpanLabel(starts[0], starts[0] + len(text)), True
