"""Parallel text: line n of one file translates line n of the others (Moses), or a TSV of pairs.

A language is a dataset of its own, so each text is parsed once. An example
holds its line twice, as `source` and as `target`; a pair of languages is two datasets crossed on
the field `target`, whose examples are joined by their ids.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Part, attempt, register
from clients.benchmarks.lines import Line, numbered_lines
from clients.files import plain_path
from syntax.errors import EmptyTextError, ExampleError, SpecError
from syntax.examples import Example, Mode, Segment

_LANG: Final = r"[a-z]{2,3}(?:[-_][A-Z]\w+)?"
_MOSES = re.compile(rf"(?P<split>.+)\.(?P<lang>{_LANG})")
_PAIRS = re.compile(rf"(?P<split>.+)\.(?P<first>{_LANG})-(?P<second>{_LANG})\.tsv")
_NO_LANGS: Final = frozenset({"csv", "gz", "ids", "md", "tmx", "tsv", "txt", "xml", "zip"})
_COLUMNS: Final = {2: (0, 1), 3: (0, 1), 4: (1, 3)}
"""Columns of the texts by their number; four columns are Tatoeba's."""


def _find(folder: Path) -> Sequence[Part]:
    return [*_moses_parts(folder), *_pair_parts(folder)]


def _moses_parts(folder: Path) -> Iterator[Part]:
    versions: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(folder.iterdir()):
        match = _MOSES.fullmatch(plain_path(path).name)
        if match and match["lang"] not in _NO_LANGS:
            versions[match["split"]][match["lang"]] = path
    for split, files in versions.items():
        for lang, own in files.items():
            others = [path for path in files.values() if path != own]
            if others:
                yield Part(split, lang, (own, *others))


def _pair_parts(folder: Path) -> Iterator[Part]:
    for path in folder.iterdir():
        match = _PAIRS.fullmatch(plain_path(path).name)
        for lang in match.group("first", "second") if match else ():
            yield Part(plain_path(path).stem, lang, (path,))


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    if plain_path(part.files[0]).suffix == ".tsv":
        return _read_pairs(part)
    return _read_lines(part)


def _read_lines(part: Part) -> Iterator[Item]:
    for number, lines in enumerate(zip_longest(*map(numbered_lines, part.files)), 1):
        yield attempt(f"{part.split}-{number}", _of_line, lines, part.files, number)


def _of_line(
    example_id: str, lines: tuple[Line | None, ...], files: tuple[Path, ...], number: int
) -> Example:
    own = lines[0]
    if own is None or None in lines:
        shorter = files[lines.index(None)]
        raise ExampleError(
            f"{shorter.name} has no line {number:,}, but its translations do; files that are "
            "parallel have as many lines, so lines before this may not fit either"
        )
    return _example(example_id, own.text(), own.where)


def _read_pairs(part: Part) -> Iterator[Item]:
    (path,) = part.files
    match = _PAIRS.fullmatch(plain_path(path).name)
    langs = match.group("first", "second") if match else ()
    if part.lang not in langs:
        raise SpecError(
            f"{path.name} does not say which of its columns is {part.lang!r}; call it after its "
            "languages, in the order of its columns: {split}.{lang}-{lang}.tsv"
        )
    side = langs.index(part.lang)
    for line in numbered_lines(path):
        yield attempt(f"{part.split}-{line.number}", _of_pair, line, side)


def _of_pair(example_id: str, line: Line, side: int) -> Example:
    values = line.text().split("\t")
    columns = _COLUMNS.get(len(values))
    if columns is None:
        raise ExampleError(
            f"{line.where} has {len(values)} fields; expected two texts, perhaps "
            "with their source, or a number and a text twice, separated by TAB"
        )
    return _example(example_id, values[columns[side]], line.where)


def _example(example_id: str, text: str, where: str) -> Example:
    if not text.strip():
        raise EmptyTextError(f"{where} is empty; expected a text")
    return Example(example_id, (Segment(text=text), Segment(text=text)))


PARALLEL: Final = register(
    Benchmark(
        name="parallel",
        fields=("source", "target"),
        labels=(),
        modes=("raw", "sentence"),
        layout="a folder of files {split}.{lang}, two or more of a split, line by line "
        "translations; or of files {split}.{lang}-{lang}.tsv",
        source="the user's own text, such as a corpus of OPUS or Tatoeba",
        licence="as the text's",
        find=_find,
        read_part=_read,
        ids="`{split}-{line}`, the same in every language of the split",
        rejects={
            "empty_text": "an empty line; its translations are read",
            "example": "a line that one of the languages does not have, or a wrong number of "
            "columns",
            "invalid_character": "a line that is not UTF-8",
        },
        quirks=(
            "source and target of an example are the same text, in the language of its part: cross "
            "two languages on `target` for translation; the text is parsed once",
            "of a TSV, the split is the file's name with its pair of languages (`dev.de-en`), and "
            "both languages are parts of it",
            "TSV: two texts, perhaps with a third column, or Tatoeba's number and text, twice",
            "a single file is one language, unless it is a TSV",
        ),
        general=True,
    )
)
