"""MultiATIS++: ATIS in nine languages; a line is the same utterance in each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import (
    BENCHMARKS,
    Benchmark,
    Item,
    Part,
    attempt,
    named_parts,
    register,
)
from clients.benchmarks.lines import Line, numbered_lines
from clients.benchmarks.slots import FIELDS, LABELS, MODES, REJECTS, divided, slot_names, utterance
from syntax.examples import Example, Mode

COLUMNS: Final = ("id", "utterance", "slot_labels", "intent")

_HEADER = b"id\t"


def _find(folder: Path) -> list[Part]:
    parts = named_parts(folder, patterns=(r"(?P<split>train|dev|test)_(?P<lang>[A-Za-z]+)\.tsv",))
    return [replace(part, lang=part.lang.lower()) for part in parts]


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    for line in numbered_lines(path):
        if line.number > 1 or not line.raw.startswith(_HEADER):
            yield attempt(f"{part.split}-{line.first_field()}", _example, line)


def _example(example_id: str, line: Line) -> Example:
    _, words, tags, intent = line.fields(COLUMNS)
    return utterance(example_id, divided(words), divided(tags), intent.strip(), line.where)


MATIS: Final = register(
    Benchmark(
        name="matis",
        fields=FIELDS,
        labels=LABELS,
        modes=MODES,
        layout="a .tsv file, or a folder of files {split}_{LANG}.tsv, such as dev_DE.tsv",
        source="Xu et al. 2020, End-to-End Slot Alignment and Recognition (MultiATIS++)",
        licence="LDC (LDC2021T04)",
        find=_find,
        read_part=_read,
        ids="{split}-{id of the file}; the same utterance has the same id in every language",
        rejects=REJECTS,
        langs=("de", "en", "es", "fr", "hi", "ja", "pt", "tr", "zh"),
        quirks=(
            "four columns: id, utterance, slot_labels, intent; the line that names them is none",
            "some lines have another number of tags than of tokens: label",
            "intents and slots are those of all splits and languages together",
        ),
        names_in=partial(slot_names, read_part=_read),
    )
)
BENCHMARKS.alias("multiatis", "matis")
