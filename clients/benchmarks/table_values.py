"""Values of a table's columns as segments and labels, and the names that labels take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from reprlib import repr as shown
from typing import Any, Final

from clients.benchmarks.answers import ANSWER_MOVED, located
from clients.benchmarks.base import Names
from clients.benchmarks.lines import check_characters
from clients.benchmarks.table_files import Row, Rows
from clients.benchmarks.tags import OUTSIDE
from syntax.errors import ExampleError, InputError, LabelError, NoLabelError, SpecError
from syntax.examples import TOKEN_MODES, LabelKind, LabelSpec, LabelValue, Mode, Segment, SpanLabel
from syntax.labels import LARGEST_FLOAT
from syntax.strict_json import parse_json

UNLABELLED: Final = -1
"""Number of a `ClassLabel` for a missing label."""

WITH_TOKENS: Final[tuple[Mode, ...]] = TOKEN_MODES


def segment_of(value: Any, mode: Mode, where: str) -> Segment:
    """Join tokens by spaces to a text, or split a text at spaces, as the mode needs."""
    tokens = value.split() if isinstance(value, str) else value
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ExampleError(f"{where} is {shown(value)}; expected a text, or a list of tokens")
    text = value if isinstance(value, str) else " ".join(tokens)
    check_characters(text, where)
    return Segment(tokens=tuple(tokens)) if mode in WITH_TOKENS else Segment(text=text)


def label_of(
    spec: LabelSpec, value: Any, names: Sequence[str], where: str, text: str = ""
) -> tuple[LabelValue, tuple[str, ...]]:
    """A label's value, and the repairs made to it.

    Names are those allowed, in id order; all if empty. Spans refer to ``text``; displaced answers
    are moved to their place in it.
    """
    if spec.kind == "spans":
        return _spans(value, names, where, text)
    return _READERS[spec.kind](value, names, where), ()


def named(spec: LabelSpec, value: Any, names: Sequence[str], where: str) -> Any:
    """Class or tags of a `ClassLabel`, with names in place of numbers.

    A number is a position in the list, also where a name looks like a number: of the names
    ``1``, ``2`` and ``3``, the number 1 stands for ``2``.
    """
    if spec.kind == "tags" and isinstance(value, list):
        return [
            _numbered(tag, names, f"{where}, tag {number}") if type(tag) is int else tag
            for number, tag in enumerate(value)
        ]
    return _numbered(value, names, where) if spec.kind == "class" and type(value) is int else value


def is_missing(spec: LabelSpec, value: Any) -> bool:
    if value is None or value == "":
        return True
    if spec.kind == "tags" and isinstance(value, list):
        return all(is_unlabelled(tag) for tag in value)
    return spec.kind == "class" and is_unlabelled(value)


def is_unlabelled(value: Any) -> bool:
    return type(value) is int and value == UNLABELLED


def names_of(spec: LabelSpec, value: Any) -> Iterable[str]:
    try:
        label, _ = label_of(spec, value, (), "")
    except InputError:
        return ()
    if isinstance(label, tuple):
        return (part.label if isinstance(part, SpanLabel) else part for part in label)
    return (str(label),)


def _class(value: Any, names: Sequence[str], where: str) -> str:
    if value == "" and value not in names:
        raise NoLabelError(f"{where} is empty; expected one class")
    return _name(value, names, where)


def _name(value: Any, names: Sequence[str], where: str) -> str:
    if value is None or isinstance(value, (list, dict, float)):
        raise LabelError(f"{where} is {shown(value)}; expected one class")
    name = _text(str(value), where)
    return name if not names or name in names else _numbered(value, names, where)


def _text(text: str, where: str) -> str:
    check_characters(text, where)
    return text


def _numbered(value: Any, names: Sequence[str], where: str) -> str:
    if value == UNLABELLED:
        raise NoLabelError(f"{where} is {value}, as `datasets` has it where nobody labelled")
    if type(value) is not int or not 0 <= value < len(names):
        raise LabelError(f"{where} is {value!r}; expected one of {', '.join(names)}")
    return names[value]


def _float(value: Any, names: Sequence[str], where: str) -> float:  # noqa: ARG001
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= LARGEST_FLOAT:
        raise LabelError(f"{where} is {shown(value)}; expected a number that is finite in 32 bits")
    return number


def _string(value: Any, names: Sequence[str], where: str) -> str:  # noqa: ARG001
    if value is None or isinstance(value, (list, dict)):
        raise LabelError(f"{where} is {shown(value)}; expected a text")
    return _text(str(value), where)


def _tags(value: Any, names: Sequence[str], where: str) -> tuple[str, ...]:
    values = value.split() if isinstance(value, str) else value
    if not isinstance(values, list):
        raise LabelError(f"{where} is {shown(value)}; expected a list of tags")
    return tuple(_tag(tag, names, f"{where}, tag {number}") for number, tag in enumerate(values))


def _tag(value: Any, names: Sequence[str], where: str) -> str:
    if value == "":
        raise LabelError(f"{where} is empty; expected a tag")
    return _name(value, names, where)


def _spans(
    value: Any, names: Sequence[str], where: str, text: str
) -> tuple[tuple[SpanLabel, ...], tuple[str, ...]]:
    """Spans in one of three forms, or as JSON.

    A list of ``[start, end]`` or ``[start, end, name]``; a list of objects with ``start``, ``end``
    and perhaps ``label``; the answers of SQuAD as `datasets` has them, ``{"text": [...],
    "answer_start": [...]}``.
    """
    try:
        content = parse_json(value) if isinstance(value, str) else value
        found = _answers_in(content) if isinstance(content, dict) else _spans_in(content)
    except (TypeError, ValueError, KeyError, RecursionError):
        raise LabelError(
            f"{where} is {shown(value)}; expected a list of [start, end, name] or of objects with "
            "start, end and label, or an object with the lists text and answer_start"
        ) from None
    placed = [(x, False) if isinstance(x, SpanLabel) else located(text, x, where) for x in found]
    spans = tuple(span for span, _ in placed)
    for span in spans:
        check_characters(span.label, where)
    unknown = [span.label for span in spans if names and span.label not in names]
    if unknown:
        raise LabelError(f"{where} names {unknown[0]!r}; expected one of {', '.join(names)}")
    return spans, tuple(ANSWER_MOVED for _, moved in placed if moved)


def _answers_in(value: dict[str, Any]) -> list[tuple[int, str]]:
    pairs = list(zip(value["answer_start"], value["text"], strict=True))
    if not all(type(start) is int and isinstance(text, str) for start, text in pairs):
        raise TypeError
    return [pair for pair in pairs if pair[1]]


def _spans_in(value: Any) -> list[SpanLabel]:
    return [
        _span(**{key.removesuffix("_char"): at for key, at in span.items()})
        if isinstance(span, dict)
        else _span(*span)
        for span in value
    ]


def _span(start: Any, end: Any, label: Any = "") -> SpanLabel:
    if type(start) is not int or type(end) is not int or not isinstance(label, str):
        raise TypeError
    return SpanLabel(start, end, label)


_READERS: Final[Mapping[LabelKind, Callable[[Any, Sequence[str], str], LabelValue]]] = {
    "class": _class,
    "float": _float,
    "string": _string,
    "tags": _tags,
}


class NameSearch:
    """Collects names of labels in tables. Errors of a table are reported when it is read."""

    def __init__(self, columns: Mapping[LabelSpec, str]) -> None:
        self._columns = columns
        self._lists: dict[LabelSpec, set[tuple[str, ...]]] = {label: set() for label in columns}
        self._seen: set[str] = set()
        self._failure: InputError | None = None

    def add(self, open_table: Callable[[], Rows]) -> None:
        """Add the names that a table lists for a column, else all that occur in it."""
        with self._noted():
            rows = open_table()
            listed = {
                x: rows.names[name] for x, name in self._columns.items() if name in rows.names
            }
            for label, names in {**listed, **self._occurring(rows)}.items():
                self._lists[label] |= {names} - {()}

    def names(self) -> Names:
        # One list if all tables have the same, else all names in a fixed order.
        found = {
            label: next(iter(lists)) if len(lists) == 1 else _sorted(set().union(*lists))
            for label, lists in self._lists.items()
        }
        for label, names in found.items():
            if label.kind != "spans" and not names:
                raise self._nameless(label)
        return {label.name: names for label, names in found.items()}

    def _occurring(self, rows: Rows) -> dict[LabelSpec, tuple[str, ...]]:
        found: dict[LabelSpec, set[str]] = {
            label: set() for label, name in self._columns.items() if name not in rows.names
        }
        for row in self._readable(rows) if found else ():
            for label, names in found.items():
                names.update(names_of(label, row.get(self._columns[label])))
        return {label: _sorted(names - {""}) for label, names in found.items()}

    def _readable(self, rows: Rows) -> Iterator[Row]:
        with self._noted():
            for make_row in rows.rows:
                with self._noted():
                    row = make_row()
                    self._seen.update(row)
                    yield row

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            self._failure = self._failure or error

    def _nameless(self, label: LabelSpec) -> InputError:
        column = self._columns[label]
        if self._failure and not self._seen:
            return self._failure
        if self._seen and column not in self._seen:
            return SpecError(
                f"there is no column {column!r} for the label {label.name!r}; the columns are "
                f"{', '.join(sorted(self._seen))}"
            )
        return SpecError(
            f"no row has in the column {column!r} a label that could be read as of kind "
            f"{label.kind!r}; choose another column or kind, or state the names of {label.name!r}"
        )


def _sorted(names: set[str]) -> tuple[str, ...]:
    """Sort ``O`` first, then numbers by size, then the others."""
    return tuple(sorted(names, key=_rank))


def _rank(name: str) -> tuple[bool, bool, int, str]:
    return name != OUTSIDE, not name.isdecimal(), int(name) if name.isdecimal() else 0, name
