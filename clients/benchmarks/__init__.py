"""Benchmark readers: files in, `Example` and `Rejection` out, nothing dropped in silence."""

from clients.benchmarks.base import BENCHMARKS, Benchmark, Item, Part
from clients.benchmarks.pawsx import PAWSX
from clients.benchmarks.sample import SAMPLE
from clients.benchmarks.text import TEXT
from clients.benchmarks.ud import UD
from clients.benchmarks.xnli import XNLI

__all__ = [
    "BENCHMARKS",
    "PAWSX",
    "SAMPLE",
    "TEXT",
    "UD",
    "XNLI",
    "Benchmark",
    "Item",
    "Part",
]
