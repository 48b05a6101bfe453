"""Files of labelled sentence pairs: ``first TAB second TAB label``, one pair on a line.

A file none of whose lines has a label is blind: its pairs are kept without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Item, Part, attempt, named_parts
from clients.benchmarks.lines import Line, any_line, numbered_lines
from syntax.errors import ExampleError, LabelError
from syntax.examples import Example, LabelSpec, Mode, Segment

LAYOUT: Final = "a .tsv file, or a folder of files {split}-{lang}.tsv, such as dev-en.tsv"

REJECTS: Final = {
    "example": "a line with another number of fields",
    "label": "another label than those stated",
    "invalid_character": "a line that is not UTF-8",
}
IDS: Final = "{split}-{line}; line n is the same item in every language"
QUIRKS: Final = (
    "no CSV: quotation marks are text",
    "a file none of whose lines has a label is blind: its pairs are kept without",
    "a field that a CSV writer has wrapped in quotation marks, doubling those inside, is undone",
)


def find_pairs(folder: Path) -> Sequence[Part]:
    return named_parts(folder, patterns=(r"(?P<split>[^-]+)-(?P<lang>.+)\.tsv",))


def read_pairs(part: Part, mode: Mode, *, label: LabelSpec) -> Iterator[Item]:  # noqa: ARG001
    """Ids are split and line (``dev-17``), so that translations of an item share them."""
    for path in part.files:
        blind = not any_line(path, _has_label)
        for line in numbered_lines(path):
            example_id = f"{part.split}-{line.number}"
            yield attempt(example_id, _example, line, label, blind)


def read_numbered_pairs(
    part: Part,
    mode: Mode,
    *,
    label: LabelSpec,
    header: bytes,
) -> Iterator[Item]:
    """Pairs of files with a header and numbers in the first column, which become the ids.

    Files without the header are read as `read_pairs` does.
    """
    (path,) = part.files
    lines = numbered_lines(path)
    if next(lines, Line(path, 1, b"")).raw not in (header, header.rpartition(b"\t")[0]):
        yield from read_pairs(part, mode, label=label)
        return
    blind = not any_line(path, lambda raw: raw != header and _has_label(raw.partition(b"\t")[2]))
    for line in lines:
        _, _, pair = line.raw.partition(b"\t")
        example_id = f"{part.split}-{line.first_field()}"
        yield attempt(example_id, _example, line._replace(raw=pair), label, blind)


def _has_label(raw: bytes) -> bool:
    return any(raw.split(b"\t")[2:3])


def _example(example_id: str, line: Line, label: LabelSpec, blind: bool) -> Example:
    values = line.text().split("\t")
    where = line.where
    if len(values) != 3 and not (blind and len(values) == 2 and any(map(str.strip, values))):
        what = "2 separated by TAB: two sentences" if blind else _EXPECTED
        raise ExampleError(f"{where} has {len(values)} fields; expected {what}")
    name = None if blind else values[2]
    return pair(example_id, values[:2], name, where, label)


_EXPECTED: Final = "3 separated by TAB: two sentences and a label"


def pair(
    example_id: str, texts: Sequence[str], name: str | None, where: str, label: LabelSpec
) -> Example:
    if name is not None and name not in label.names:
        raise LabelError(
            f"{where} has the label {name!r}; expected one of {', '.join(label.names)}"
        )
    return Example(example_id, tuple(Segment(text=unquoted(x)) for x in texts), {label.name: name})


def unquoted(field: str) -> str:
    r"""Undo the quoting of a CSV writer: only of a wrapped field with doubled marks inside.

    >>> unquoted('"He said ""no""."'), unquoted('"No", he said.'), unquoted('"No."')
    ('He said "no".', '"No", he said.', '"No."')
    """
    inner = field[1:-1]
    if len(field) < 2 or field[0] != '"' or field[-1] != '"' or '"' not in inner:
        return field
    bare = inner.replace('""', "")
    return field if '"' in bare else inner.replace('""', '"')
