"""The bundled sample: 500 English sentence pairs of this project, where syntax decides."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, register
from clients.benchmarks.pairs import IDS, LAYOUT, REJECTS, find_pairs, read_pairs
from clients.benchmarks.xnli import LABEL

SAMPLE: Final = register(
    Benchmark(
        name="sample",
        fields=("premise", "hypothesis"),
        labels=(LABEL,),
        modes=("raw", "sentence"),
        layout=LAYOUT,
        source="written for Parsebank",
        licence="Apache-2.0",
        find=find_pairs,
        read_part=partial(read_pairs, label=LABEL),
        ids=IDS,
        rejects=REJECTS,
        langs=("en",),
        bundled=Path(__file__).parent,
    )
)
