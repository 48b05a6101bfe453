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
    """The parts of a folder whose files are named ``{split}-{lang}.tsv``."""
    return named_parts(folder, patterns=(r"(?P<split>[^-]+)-(?P<lang>.+)\.tsv",))


def read_pairs(part: Part, mode: Mode, *, label: LabelSpec) -> Iterator[Item]:  # noqa: ARG001
    """Examples with two segments and a class label, and rejections for other lines.

    An example's id is its split and line number (``dev-17``), so that the translations of one
    item share it, however many lines of either file are rejected.
    """
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
    """The same of files that open with a header and number their pairs in the first column.

    The number takes the place of the line's in the id. Files without the header, with the label or
    without, are read as `read_pairs` does.
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
    """An example of two sentences and a class.

    Args:
        example_id: Its id.
        texts: The sentences.
        name: Name of the class; None in a blind file.
        where: File and line, for the message.
        label: The label column.
    """
    if name is not None and name not in label.names:
        raise LabelError(
            f"{where} has the label {name!r}; expected one of {', '.join(label.names)}"
        )
    return Example(example_id, tuple(Segment(text=unquoted(x)) for x in texts), {label.name: name})


def unquoted(field: str) -> str:
    r"""The text of a field that a CSV writer may have quoted.

    Copies of these benchmarks differ: some are plain, in others a CSV writer has wrapped every
    sentence that holds a quotation mark and doubled the marks inside. Only such a field is
    undone; the quotation marks of a plain file stay text.

    >>> unquoted('"He said ""no""."'), unquoted('"No", he said.'), unquoted('"No."')
    ('He said "no".', '"No", he said.', '"No."')
    """
    inner = field[1:-1]
    if len(field) < 2 or field[0] != '"' or field[-1] != '"' or '"' not in inner:
        return field
    bare = inner.replace('""', "")
    return field if '"' in bare else inner.replace('""', '"')
