"""Benchmark readers: files in, `Example` and `Rejection` out, nothing dropped in silence."""

from clients.benchmarks.ace import ACE
from clients.benchmarks.atis import ATIS, SNIPS
from clients.benchmarks.base import ANY, BENCHMARKS, Benchmark, Item, Part
from clients.benchmarks.brackets import BRACKETS
from clients.benchmarks.codexglue import CLONE
from clients.benchmarks.conll import CONLL
from clients.benchmarks.fce import FCE
from clients.benchmarks.glue import COLA, SST2
from clients.benchmarks.matis import MATIS
from clients.benchmarks.microbert import MICROBERT
from clients.benchmarks.mlqa import MLQA
from clients.benchmarks.mtop import MTOP
from clients.benchmarks.parallel import PARALLEL
from clients.benchmarks.pawsx import PAWSX
from clients.benchmarks.pronto import PRONTO
from clients.benchmarks.race import RACE
from clients.benchmarks.sample import SAMPLE
from clients.benchmarks.senteval import SENTEVAL
from clients.benchmarks.snli import MNLI, SNLI
from clients.benchmarks.squad import SQUAD
from clients.benchmarks.table import TABLE, dataset_items, table_benchmark
from clients.benchmarks.text import TEXT
from clients.benchmarks.translation import TRANSLATION
from clients.benchmarks.tydiqa import TYDIQA
from clients.benchmarks.ud import UD
from clients.benchmarks.ud_probe import UD_PROBE, UD_PROBE_SHIFT
from clients.benchmarks.wikiann import WIKIANN
from clients.benchmarks.xnli import XNLI
from clients.benchmarks.xquad import XQUAD

__all__ = [
    "ACE",
    "ANY",
    "ATIS",
    "BENCHMARKS",
    "BRACKETS",
    "CLONE",
    "COLA",
    "CONLL",
    "FCE",
    "MATIS",
    "MICROBERT",
    "MLQA",
    "MNLI",
    "MTOP",
    "PARALLEL",
    "PAWSX",
    "PRONTO",
    "RACE",
    "SAMPLE",
    "SENTEVAL",
    "SNIPS",
    "SNLI",
    "SQUAD",
    "SST2",
    "TABLE",
    "TEXT",
    "TRANSLATION",
    "TYDIQA",
    "UD",
    "UD_PROBE",
    "UD_PROBE_SHIFT",
    "WIKIANN",
    "XNLI",
    "XQUAD",
    "Benchmark",
    "Item",
    "Part",
    "dataset_items",
    "table_benchmark",
]
