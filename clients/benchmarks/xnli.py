"""XNLI: does the premise entail the hypothesis? 15 languages, line n is the same item in each."""

from __future__ import annotations

from functools import partial
from typing import Final

from clients.benchmarks.base import BENCHMARKS, Benchmark
from clients.benchmarks.pairs import LAYOUT, find_pairs, read_pairs
from syntax.examples import LabelSpec

LABEL: Final = LabelSpec("label", "class", ("entailment", "neutral", "contradiction"))

XNLI: Final = BENCHMARKS.add(
    "xnli",
    Benchmark(
        name="xnli",
        fields=("premise", "hypothesis"),
        labels=(LABEL,),
        modes=("raw", "sentence"),
        layout=LAYOUT,
        source="Conneau et al. 2018, XNLI: Evaluating Cross-lingual Sentence Representations",
        licence="CC BY-NC 4.0",
        find=find_pairs,
        read_part=partial(read_pairs, label=LABEL),
    ),
)
