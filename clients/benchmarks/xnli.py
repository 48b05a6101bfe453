"""XNLI: entailment between sentences in 15 languages; line n is the same item in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Part, attempt, named_parts, register
from clients.benchmarks.lines import Line, numbered_lines
from clients.benchmarks.pairs import IDS, LAYOUT, QUIRKS, REJECTS, find_pairs, pair, read_pairs
from syntax.examples import Example, LabelSpec, Mode

LABEL: Final = LabelSpec("label", "class", ("entailment", "neutral", "contradiction"))

Columns = tuple[str, ...]

_PAIR = ("sentence1", "sentence2", "gold_label")
_TRANSLATED = ("premise", "hypo", "label")
_OF_THEIRS = {"contradictory": "contradiction"}


def _find(folder: Path) -> Sequence[Part]:
    several = named_parts(folder, patterns=(r"xnli\.(?P<split>dev|test)\.tsv",))
    translated = named_parts(folder, patterns=(r"multinli\.(?P<split>train)\.(?P<lang>.+)\.tsv",))
    spread = [Part(x.split, lang, x.files) for x in several for lang in _langs(x.files[0])]
    return [*find_pairs(folder), *translated, *spread]


def _langs(path: Path) -> set[str]:
    rows = (line.raw for line in numbered_lines(path) if line.number > 1 and line.raw)
    return {raw.partition(b"\t")[0].decode("utf-8", "backslashreplace") for raw in rows}


def _read(part: Part, mode: Mode) -> Iterator[Item]:
    (path,) = part.files
    first = next(numbered_lines(path), Line(path, 1, b""))
    columns = tuple(first.raw.decode("utf-8", "backslashreplace").split("\t"))
    if columns != _TRANSLATED and not {"language", *_PAIR[:2]} <= set(columns):
        yield from read_pairs(part, mode, label=LABEL)
        return
    prefix = part.lang.encode() + b"\t" if "language" in columns else b""
    rows = numbered_lines(path)
    next(rows)
    rows_of_lang = (line for line in rows if line.raw.startswith(prefix))
    for count, line in enumerate(rows_of_lang, 1):
        example_id = f"{part.split}-{count}"
        yield attempt(example_id, _example, line, columns)


def _example(example_id: str, line: Line, columns: Columns) -> Example:
    record = dict(zip(columns, line.fields(columns), strict=True))
    first, second, label = _TRANSLATED if columns == _TRANSLATED else _PAIR
    theirs = record.get(label)
    name = None if theirs is None else _OF_THEIRS.get(theirs, theirs)
    return pair(example_id, (record[first], record[second]), name, line.where, LABEL)


XNLI: Final = register(
    Benchmark(
        name="xnli",
        fields=("premise", "hypothesis"),
        labels=(LABEL,),
        modes=("raw", "sentence"),
        layout=f"{LAYOUT}, or of the authors' xnli.dev.tsv and multinli.train.de.tsv",
        source="Conneau et al. 2018, XNLI: Evaluating Cross-lingual Sentence Representations",
        licence="CC BY-NC 4.0",
        find=_find,
        read_part=_read,
        ids=f"{IDS}; lines of the authors' files are counted in each language",
        rejects=REJECTS,
        langs=(
            *("ar", "bg", "de", "el", "en", "es", "fr", "hi"),
            *("ru", "sw", "th", "tr", "ur", "vi", "zh"),
        ),
        quirks=(*QUIRKS, "contradictory, in the translated training files, is contradiction"),
    )
)
