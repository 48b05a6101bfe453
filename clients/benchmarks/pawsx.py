"""PAWS-X: is the second sentence a paraphrase of the first? Pairs share almost all words."""

from __future__ import annotations

from functools import partial
from typing import Final

from clients.benchmarks.base import BENCHMARKS, Benchmark
from clients.benchmarks.pairs import LAYOUT, find_pairs, read_pairs
from syntax.examples import LabelSpec

LABEL: Final = LabelSpec("label", "class", ("0", "1"))
"""``1``: a paraphrase."""

PAWSX: Final = BENCHMARKS.add(
    "pawsx",
    Benchmark(
        name="pawsx",
        fields=("sentence1", "sentence2"),
        labels=(LABEL,),
        modes=("raw", "sentence"),
        layout=LAYOUT,
        source="Yang et al. 2019, PAWS-X: A Cross-lingual Adversarial Dataset (Google LLC)",
        licence="free for any purpose, acknowledging Google LLC",
        find=find_pairs,
        read_part=partial(read_pairs, label=LABEL),
    ),
)
