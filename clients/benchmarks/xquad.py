"""XQuAD: 1,190 questions of SQuAD 1.1, translated with their passages into eleven languages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from clients.benchmarks.answers import (
    ANSWERS,
    FIELDS,
    IDS,
    MODES,
    QUIRKS,
    REJECTS,
    read_answers,
)
from clients.benchmarks.base import Benchmark, Part, named_parts, register


def _find(folder: Path) -> Sequence[Part]:
    found = named_parts(folder, patterns=(r"xquad\.(?P<lang>[^.]+)\.json",))
    return [replace(part, split="test") for part in found]


XQUAD: Final = register(
    Benchmark(
        name="xquad",
        fields=FIELDS,
        labels=(ANSWERS,),
        modes=MODES,
        layout="a .json file, or a folder of files xquad.{lang}.json",
        source="Artetxe et al. 2020, On the Cross-lingual Transferability of Monolingual "
        "Representations",
        licence="CC BY-SA 4.0",
        find=_find,
        read_part=read_answers,
        ids=f"{IDS}; the same in every language",
        rejects=REJECTS,
        langs=("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh"),
        quirks=("its one split is `test`", *QUIRKS[:2]),
    )
)
