"""FCE: which tokens of learners' English are errors."""

from __future__ import annotations

from functools import partial
from typing import Final

from clients.benchmarks.base import Benchmark, register
from clients.benchmarks.columns import MODES, REJECTS, read_columns
from clients.benchmarks.layout import named_parts
from syntax.examples import LabelSpec

LABEL: Final = LabelSpec("errors", "tags", ("c", "i"), "text")
"""Correct or incorrect, token by token."""

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
        read_part=partial(read_columns, label=LABEL),
        ids="{split}-{number of the sentence in the file}",
        rejects=REJECTS,
        langs=("en",),
        quirks=(
            "tag c is a correct token, i an incorrect one; they spell no mentions",
            "a token that is missing is marked on the one after it",
        ),
    )
)
