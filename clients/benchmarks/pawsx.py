"""PAWS and PAWS-X: paraphrases among sentence pairs that share most words."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import BENCHMARKS, Benchmark, Part, named_parts, register
from clients.benchmarks.pairs import IDS, QUIRKS, REJECTS, find_pairs, read_numbered_pairs
from syntax.examples import LabelSpec

LABEL: Final = LabelSpec("label", "class", ("0", "1"))
"""``1`` is a paraphrase."""

HEADER: Final = b"id\tsentence1\tsentence2\tlabel"

_SPLIT = "(?P<split>train|translated_train|dev|dev_2k|test|test_2k)"
_OWN_SPLITS = {"translated_train": "train", "dev_2k": "dev", "test_2k": "test"}


def _find(folder: Path) -> list[Part]:
    patterns = (rf"{_SPLIT}\.tsv", rf"(?P<lang>.+)/{_SPLIT}\.tsv")
    own = named_parts(folder, patterns=patterns, lang="en")
    named = (replace(part, split=_OWN_SPLITS.get(part.split, part.split)) for part in own)
    return [*find_pairs(folder), *named]


PAWSX: Final = register(
    Benchmark(
        name="pawsx",
        fields=("sentence1", "sentence2"),
        labels=(LABEL,),
        modes=("raw", "sentence"),
        layout=(
            "a .tsv file, or a folder of files {split}-{lang}.tsv, such as dev-en.tsv, or of the "
            "authors' {lang}/dev_2k.tsv or (PAWS, English) dev.tsv"
        ),
        source="Zhang et al. 2019, PAWS; Yang et al. 2019, PAWS-X (Google LLC)",
        licence="free for any purpose, acknowledging Google LLC",
        find=_find,
        read_part=partial(read_numbered_pairs, label=LABEL, header=HEADER),
        ids=f"{IDS}; the authors' files number their pairs, which is the same",
        rejects=REJECTS,
        langs=("de", "en", "es", "fr", "ja", "ko", "zh"),
        quirks=QUIRKS,
    )
)
BENCHMARKS.alias("paws", "pawsx")
