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
from clients.benchmarks.lines import decoded, numbered_lines, tsv_fields
from clients.benchmarks.slots import FIELDS, LABELS, MODES, REJECTS, divided, slot_names, utterance
from syntax.examples import Example, Mode

COLUMNS: Final = ("id", "utterance", "slot_labels", "intent")

_HEADER = b"id\t"


def _find(folder: Path) -> list[Part]:
    parts = named_parts(folder, patterns=(r"(?P<split>train|dev|test)_(?P<lang>[A-Za-z]+)\.tsv",))
    return [replace(part, lang=part.lang.lower()) for part in parts]


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    for number, raw in numbered_lines(path):
        if number > 1 or not raw.startswith(_HEADER):
            own = raw.partition(b"\t")[0].decode("utf-8", "backslashreplace") or f"line-{number}"
            example_id = f"{part.split}-{own}"
            yield attempt(example_id, partial(_example, example_id, raw, path, number))


def _example(example_id: str, raw: bytes, path: Path, number: int) -> Example:
    where = f"{path.name}, line {number}"
    _, words, tags, intent = tsv_fields(decoded(raw, path, number), COLUMNS, where)
    return utterance(example_id, divided(words), divided(tags), intent.strip(), where)


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
