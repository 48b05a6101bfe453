"""FCE: errors in learners' English, token by token, in files of either of two kinds of tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Names, Part, named_parts, register
from clients.benchmarks.lines import blocks
from clients.benchmarks.tags import MODES, REJECTS, read_columns
from syntax.errors import SpecError
from syntax.examples import LabelSpec, Mode

LABEL: Final = LabelSpec("errors", "tags", ("c", "i"), "text")

EDITS: Final = ("O", "B-R", "I-R", "B-U", "I-U", "B-M")


def _names_of(path: Path) -> tuple[str, ...]:
    """Tags of a file, known by the first one: in the last column, or in the one before."""
    for raw in chain.from_iterable(lines for _, lines in blocks(path, lambda raw: not raw.strip())):
        for tag in raw.decode("utf-8", "replace").split()[:0:-1][:2]:
            for names in (LABEL.names, EDITS):
                if tag in names:
                    return names
    return LABEL.names


def _names_in(parts: Sequence[Part]) -> Names:
    found = {_names_of(file): file for part in parts for file in part.files}
    if len(found) > 1:
        kinds = "; ".join(f"{file.name}: {', '.join(names)}" for names, file in found.items())
        raise SpecError(f"the files of fce have tags of two kinds ({kinds}); keep them apart")
    return {LABEL.name: next(iter(found), LABEL.names)}


def _read(part: Part, mode: Mode) -> Iterator[Item]:
    names = _names_of(part.files[0])
    return read_columns(part, mode, label=replace(LABEL, names=names))


FCE: Final = register(
    Benchmark(
        name="fce",
        fields=("text",),
        labels=(LABEL,),
        modes=MODES,
        layout="a file of tokens and their tags, or a folder of fce-public.{split}.original.tsv",
        source=(
            "Yannakoudakis et al. 2011, First Certificate in English; error detection of Rei and "
            "Yannakoudakis 2016"
        ),
        licence="non-commercial research and education",
        find=partial(
            named_parts,
            patterns=(r"(?:fce-public\.)?(?P<split>train|dev|test)(?:\.original)?\.tsv",),
            lang="en",
        ),
        read_part=_read,
        names_in=_names_in,
        ids="{split}-{number of the sentence in the file}",
        rejects=REJECTS,
        langs=("en",),
        quirks=(
            "tag c is a correct token, i an incorrect one; they spell no mentions",
            "or six tags, of spans: O, B-R I-R to replace, B-U I-U not needed, B-M before a gap",
            "a token that is missing is marked on the one after it",
        ),
    )
)
