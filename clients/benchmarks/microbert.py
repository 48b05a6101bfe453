"""Web pages as MicroBERT reads them (Gessler, Zeldes 2022): each sentence is an example.

The released preparation is followed to the sentence, the token and the split: of the Wolof pages,
517,992 tokens and 59,190 types of them are `train` (published: 517,237 and 59,137).
"""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Final

from clients.benchmarks.base import (
    ANY,
    Benchmark,
    Item,
    Part,
    attempt,
    files_like,
    register,
)
from clients.benchmarks.documents import guarded
from clients.benchmarks.lines import whole_text
from clients.benchmarks.web_pages import page_text, sentences
from clients.files import is_tar, open_file, plain_path, tar_files
from syntax.errors import EmptyTextError, UnknownNameError
from syntax.examples import TOKEN_MODES, Example, Mode, Segment

SEED: Final = 1337

TRAIN_SHARE: Final = 0.9

_NUMBER: Final = re.compile(r"__(\d+)$")
_LANG: Final = re.compile(r"([a-z]{2,3})_")


def divided(names: Sequence[str]) -> dict[str, list[str]]:
    """Documents of ``train`` and ``dev``.

    Args:
        names: Names without ending, such as ``wo_wikipedia_org__1019``, sorted by the number at
            their end, or by name if one has none, before they are shuffled.
    """
    ordered = sorted(names)
    if all(map(_NUMBER.search, names)):
        ordered.sort(key=_number)
    places = list(range(len(ordered)))
    random.Random(SEED).shuffle(places)
    count = math.ceil(TRAIN_SHARE * len(places))
    parts = {"train": places[:count], "dev": places[count:]}
    return {split: [ordered[place] for place in sorted(part)] for split, part in parts.items()}


def _number(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match[1]) if match else 0


def _find(folder: Path) -> Sequence[Part]:
    pages: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in files_like(folder, "**/*.html"):
        name = plain_path(path).stem
        match = _LANG.match(name)
        pages[match[1] if match else ANY][name] = path
    return [
        Part(split, lang, tuple(files[name] for name in names))
        for lang, files in pages.items()
        for split, names in divided(list(files)).items()
        if names
    ]


def _read(part: Part, mode: Mode) -> Iterator[Item]:
    for path in part.files:
        # A folder's files are pages: only what the user names as a file can be an archive.
        if len(part.files) == 1 and is_tar(path):
            yield from _of_archive(path, part.split, mode)
        else:
            yield from guarded(plain_path(path), _of_file(path, mode))


def _of_archive(path: Path, split: str, mode: Mode) -> Iterator[Item]:
    """Read the archive twice: first names, then contents."""
    wanted = None
    if split in ("train", "dev"):
        pages = (PurePosixPath(name) for name, _ in tar_files(path))
        wanted = frozenset(divided([page.stem for page in pages if page.suffix == ".html"])[split])
    for name, file in tar_files(path):
        page = PurePosixPath(name)
        if page.suffix == ".html" and (wanted is None or page.stem in wanted):
            yield from guarded(Path(page.name), _of_page(file, page.stem, mode))


def _of_file(path: Path, mode: Mode) -> Iterator[Item]:
    if plain_path(path).suffix != ".html":
        raise UnknownNameError(
            f"{path} is neither a web page (.html) nor a tar archive of some", path=str(path)
        )
    with open_file(path) as file:
        yield from _of_page(file, plain_path(path).stem, mode)


def _of_page(file: IO[bytes], name: str, mode: Mode) -> Iterator[Item]:
    number = 0
    for number, sentence in enumerate(sentences(page_text(whole_text(file, name))), 1):
        example_id = f"{name}-{number}"
        yield attempt(example_id, _example, sentence, mode)
    if not number:
        raise EmptyTextError(f"{name} has no text; expected a page with sentences")


def _example(example_id: str, sentence: str, mode: Mode) -> Example:
    tokens = tuple(sentence.split())
    text = Segment(text=" ".join(tokens)) if mode == "sentence" else Segment(tokens=tokens)
    return Example(example_id, (text,))


MICROBERT: Final = register(
    Benchmark(
        name="microbert",
        fields=("text",),
        labels=(),
        modes=(*TOKEN_MODES, "sentence"),
        layout="a folder of web pages {lang}_{site}__{number}.html, also in folders below; or a "
        "tar archive of them, packed or not",
        source="Wikipedia; the pages as in https://github.com/lgessler/microbert, data/*/corpora",
        licence="CC BY-SA",
        find=_find,
        read_part=_read,
        ids="{file}-{number of the sentence in the page}",
        rejects={
            "empty_text": "a page without text",
            "input": "a page that is UTF-16 or packed twice",
            "invalid_character": "a page that is not UTF-8",
            "text_too_long": "a page of more than 16 MiB",
        },
        quirks=(
            "the pages of a language, sorted by number, are shuffled with seed 1337; the first "
            "nine tenths are train, the others dev",
            "of an archive, any other name of a split means all pages; pages come in its order",
            "tokens are separated by white space: punctuation stays on them, unless the parser "
            "splits them (retokenize)",
            "`3.5` is two sentences: every full stop ends one, as in the release",
        ),
    )
)
