"""Plain text: one text on a line, in one UTF-8 file or in every ``.txt`` file of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import ANY, Benchmark, Item, Part, attempt, files_like, register
from clients.benchmarks.lines import decoded, numbered_lines
from clients.files import plain_path
from syntax.errors import EmptyTextError
from syntax.examples import Example, Mode, Segment


def _find(folder: Path) -> Sequence[Part]:
    files = files_like(folder, "*.txt")
    return [Part(ANY, ANY, files)] if files else []


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    for path in part.files:
        for number, raw in numbered_lines(path):
            example_id = f"{plain_path(path).stem}-{number}"
            yield attempt(example_id, partial(_example, example_id, raw, path, number))


def _example(example_id: str, raw: bytes, path: Path, number: int) -> Example:
    text = decoded(raw, path, number)
    if not text.strip():
        raise EmptyTextError(f"{path.name}, line {number} is empty; expected a text")
    return Example(example_id, (Segment(text=text),))


TEXT: Final = register(
    Benchmark(
        name="text",
        fields=("text",),
        labels=(),
        modes=("raw", "sentence"),
        layout="a UTF-8 file with a text on each line, or a folder of such files, *.txt",
        source="the user's own text",
        licence="as the text's",
        find=_find,
        read_part=_read,
        ids="{file}-{line}",
        rejects={
            "empty_text": "an empty line",
            "invalid_character": "a line that is not UTF-8",
        },
        general=True,
    )
)
