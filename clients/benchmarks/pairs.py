"""Files of labelled sentence pairs: ``first TAB second TAB label``, one pair on a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Item, Part, attempt
from clients.benchmarks.lines import decoded, numbered_lines
from syntax.errors import ExampleError
from syntax.examples import Example, LabelSpec, Mode, Segment

LAYOUT: Final = "a .tsv file, or a folder of files {split}-{lang}.tsv, such as dev-en.tsv"

_FILE_NAME = re.compile(r"(?P<split>[^-]+)-(?P<lang>.+)\.tsv")


def find_pairs(folder: Path) -> Sequence[Part]:
    """The parts of a folder whose files are named ``{split}-{lang}.tsv``."""
    named = ((_FILE_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return [Part(match["split"], match["lang"], (path,)) for match, path in named if match]


def read_pairs(part: Part, mode: Mode, *, label: LabelSpec) -> Iterator[Item]:  # noqa: ARG001
    """Examples with two segments and a class label, and rejections for lines that are none.

    An example's id is its split and line number (``dev-17``), so that the translations of one
    item share it, however many lines of either file are rejected.
    """
    for path in part.files:
        for number, raw in numbered_lines(path):
            example_id = f"{part.split}-{number}"
            yield attempt(example_id, partial(_pair, example_id, raw, path, number, label))


def _pair(example_id: str, raw: bytes, path: Path, number: int, label: LabelSpec) -> Example:
    values = decoded(raw, path, number).split("\t")
    if len(values) != 3:
        raise ExampleError(
            f"{path.name}, line {number} has {len(values)} fields; "
            "expected 3 separated by TAB: two sentences and a label"
        )
    if values[2] not in label.names:
        raise ExampleError(
            f"{path.name}, line {number} has the label {values[2]!r}; "
            f"expected one of {', '.join(label.names)}"
        )
    texts = tuple(Segment(text=unquoted(value)) for value in values[:2])
    return Example(example_id, texts, {label.name: values[2]})


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
