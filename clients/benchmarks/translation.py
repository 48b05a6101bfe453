"""Parallel text to translate: line n of one file; the label is line n of the other, unparsed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Part, register
from clients.benchmarks.parallel import PARALLEL
from syntax.errors import SpecError
from syntax.examples import LabelSpec, Mode, Rejection

TARGET: Final = "target"


def _find(folder: Path) -> Sequence[Part]:
    """Parts of two languages; each is the source of the other."""
    parts = PARALLEL.find(folder)
    langs: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        langs[part.split].append(part.lang)
    for split, found in langs.items():
        if len(found) > 2:
            raise SpecError(
                f"{split} in {folder} is there in {', '.join(sorted(found))}, which leaves open "
                "what to translate into; put the files of two languages into a folder"
            )
    return parts


def _read(part: Part, mode: Mode) -> Iterator[Item]:
    sides = (PARALLEL.read_part(one, mode) for one in (part, _other(part)))
    for source, target in zip(*sides, strict=True):
        yield _joined(source, target)


def _other(part: Part) -> Part:
    for other in PARALLEL.find(part.files[0].parent):
        if set(other.files) == set(part.files) and other.lang != part.lang:
            return other
    raise SpecError(
        f"{part.files[0]} has no translation beside it; give the folder of the files of both "
        "languages"
    )


def _joined(source: Item, target: Item) -> Item:
    if isinstance(source, Rejection) or isinstance(target, Rejection):
        return source if isinstance(source, Rejection) else target
    (text, *_), (translation, *_) = source.segments, target.segments
    assert translation.text is not None
    return replace(source, segments=(text,), labels={TARGET: translation.text.strip()})


TRANSLATION: Final = register(
    Benchmark(
        name="translation",
        fields=("source",),
        labels=(LabelSpec(TARGET, "string"),),
        modes=("sentence", "raw"),
        layout="a folder of files {split}.{lang} in two languages, line by line translations; or "
        "of files {split}.{lang}-{lang}.tsv",
        source="the user's own text, such as Multi30k or a corpus of OPUS",
        licence="as the text's",
        find=_find,
        read_part=_read,
        ids="`{split}-{line}`, the same in both languages",
        rejects={
            "empty_text": "an empty line in either language",
            "example": "a line that one of the languages does not have, or a wrong number of "
            "columns",
            "invalid_character": "a line that is not UTF-8, in either language",
        },
        quirks=(
            "the language of a part is that of the source; the other one is the label `target`, "
            "which is not parsed",
            "each line is one sentence (`raw` splits it)",
            "the files are those of `parallel`; name the reader, which is not guessed from a path",
        ),
        general=True,
        named_only=True,
    )
)
