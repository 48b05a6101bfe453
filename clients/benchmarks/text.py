"""Plain text: a text on each line, or in each file, of a UTF-8 file or of a folder.

A folder ``train``, ``dev`` or ``test`` at the top is the split of that name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from clients.benchmarks.base import (
    ANY,
    Benchmark,
    Item,
    Part,
    attempt,
    canonical_split,
    files_like,
    register,
)
from clients.benchmarks.documents import guarded
from clients.benchmarks.lines import Line, numbered_lines, whole_text
from clients.files import open_file, plain_path
from syntax.errors import EmptyTextError
from syntax.examples import Example, Mode, Segment


def _find(folder: Path) -> Sequence[Part]:
    roots: dict[Path, list[Path]] = defaultdict(list)
    for path in files_like(folder, "**/*.txt"):
        top = path.relative_to(folder).parts[0]
        is_split = canonical_split(top) in ("train", "dev", "test")
        roots[folder / top if is_split else folder].append(path)
    return [
        Part(ANY if root == folder else root.name, ANY, tuple(files), root)
        for root, files in roots.items()
    ]


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    for path in part.files:
        name = _name(path, part.root)
        for line in numbered_lines(path):
            example_id = f"{name}-{line.number}"
            yield attempt(example_id, _example, line)


def _name(path: Path, root: Path | None) -> str:
    plain = plain_path(path).with_suffix("")
    return plain.name if root is None else plain.relative_to(root).as_posix()


def _example(example_id: str, line: Line) -> Example:
    text = line.text()
    if not text.strip():
        raise EmptyTextError(f"{line.where} is empty; expected a text")
    return Example(example_id, (Segment(text=text),))


def _read_files(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    for path in part.files:
        yield from guarded(path, _of_file(path, _name(path, part.root)))


def _of_file(path: Path, name: str) -> Iterator[Item]:
    with open_file(path) as file:
        yield attempt(name, _document, file, path)


def _document(name: str, file: IO[bytes], path: Path) -> Example:
    text = whole_text(file, path.name)
    if not text.strip():
        raise EmptyTextError(f"{name} is empty; expected a text")
    return Example(name, (Segment(text=text),))


TEXT: Final = register(
    Benchmark(
        name="text",
        fields=("text",),
        labels=(),
        modes=("raw", "sentence"),
        layout="a UTF-8 file with a text on each line, or a folder of such files, *.txt, also in "
        "folders below; {train|dev|test}/ at its top are splits",
        source="the user's own text",
        licence="as the text's",
        find=_find,
        read_part=_read,
        ids="{file}-{line}, with the folders between",
        rejects={
            "empty_text": "an empty line",
            "invalid_character": "a line that is not UTF-8",
        },
        quirks=("with --whole-files, each file is a text of the id {file}",),
        general=True,
    )
)

WHOLE_FILES: Final = replace(
    TEXT,
    modes=("raw",),
    layout="a UTF-8 file, or a folder of such files, *.txt, also in folders below; "
    "{train|dev|test}/ at its top are splits",
    read_part=_read_files,
    ids="{file}, with the folders between",
    rejects={
        "empty_text": "an empty file",
        "input": "a file that is UTF-16 or packed twice",
        "invalid_character": "a file that is not UTF-8",
        "text_too_long": "a file of more than 16 MiB",
    },
    quirks=(),
)
