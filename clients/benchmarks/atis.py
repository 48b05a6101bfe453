"""ATIS and SNIPS: intent and slots of what people say to an assistant, in three parallel files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Part, attempt, files_like, register
from clients.benchmarks.lines import Line, numbered_lines
from clients.benchmarks.slots import FIELDS, LABELS, MODES, REJECTS, divided, slot_names, utterance
from clients.files import plain_path
from syntax.errors import ExampleError, SpecError
from syntax.examples import Example, Mode

FILES: Final = ("seq.in", "seq.out", "label")


def _find(folder: Path) -> Sequence[Part]:
    first = (files_like(folder, f"{depth}/{FILES[0]}") for depth in ("*", "*/*"))
    return [_part(path.parent, folder) for paths in first for path in paths]


def _part(split: Path, folder: Path) -> Part:
    lang = "en" if split.parent == folder else split.parent.name
    files = (files_like(split, name) or (split / name,) for name in FILES)
    return Part(split.name, lang, tuple(path for found in files for path in found))


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    if tuple(plain_path(path).name for path in part.files) != FILES:
        raise SpecError(f"{part.files[0]} is one of three files; give the folder of the splits")
    for number, row in enumerate(zip_longest(*map(numbered_lines, part.files)), 1):
        yield attempt(f"{part.split}-{number}", _example, row, part, number)


def _example(example_id: str, row: Sequence[Line | None], part: Part, number: int) -> Example:
    texts = [_text(line, path, number) for line, path in zip(row, part.files, strict=True)]
    words, tags, intent = texts
    where = f"{part.files[0].parent.name}, line {number}"
    return utterance(example_id, divided(words), divided(tags), intent.strip(), where)


def _text(line: Line | None, path: Path, number: int) -> str:
    if line is None:
        raise ExampleError(
            f"{path.parent.name}/{path.name} has no line {number}, the files beside it have; "
            "expected as many lines in each"
        )
    return line.text()


def _benchmark(name: str, source: str, licence: str, quirks: tuple[str, ...]) -> Benchmark:
    return Benchmark(
        name=name,
        fields=FIELDS,
        labels=LABELS,
        modes=MODES,
        layout="a folder of folders {split} or {lang}/{split}, each with seq.in, seq.out and label",
        source=source,
        licence=licence,
        find=_find,
        read_part=_read,
        ids="{split}-{line}",
        rejects=REJECTS,
        langs=("en",),
        quirks=(
            *quirks,
            "intents and slots are those of all splits together: test has some that train has not",
        ),
        names_in=partial(slot_names, read_part=_read),
    )


ATIS: Final = register(
    _benchmark(
        "atis",
        source="Hemphill et al. 1990, ATIS; splits of Goo et al. 2018 (Slot-Gated Modeling)",
        licence="LDC (ATIS2 and ATIS3)",
        quirks=("an utterance of two intents has both, joined by #, as a name of its own",),
    )
)
SNIPS: Final = register(
    _benchmark(
        "snips",
        source="Coucke et al. 2018, Snips Voice Platform; splits of Goo et al. 2018",
        licence="CC0",
        quirks=("lines end in spaces, and double spaces stand where punctuation was",),
    )
)
