"""What a backfill is compared with: a pipeline as papers' releases have it.

As the preprocessing of Syntax-MBERT (Ahmad et al. 2021) does it: a pool of processes, each text
one "sentence" per line for UDPipe, which writes CoNLL-U that the package `conllu` reads again;
words of the first tree of each text become JSON lines. Pairs of which a side comes to no sentence
are lost without a word, and further sentences of a text with them. No text is remembered: what
comes three times is parsed three times.
"""

from __future__ import annotations

import json
import multiprocessing.pool
import time
from dataclasses import dataclass
from typing import Any

import conllu
import ufal.udpipe

from benchmarks.backfill.corpus import Pair
from benchmarks.backfill.raw import CHUNK, JOB_NICENESS
from service.processes import lower_priority

_pipeline: Any
_error: Any


@dataclass(frozen=True)
class Peer:
    """A run of the other pipeline, and how many pairs it gave."""

    seconds: float
    processor: float
    kept: int


def load(path: str) -> None:
    global _pipeline, _error
    lower_priority(JOB_NICENESS)
    model = ufal.udpipe.Model.load(path)
    default = ufal.udpipe.Pipeline.DEFAULT
    _pipeline = ufal.udpipe.Pipeline(model, "tokenizer=presegmented", default, default, "conllu")
    _pipeline.model = model  # kept alive with it
    _error = ufal.udpipe.ProcessingError()
    convert([("0", "The room is warm.", "The water is warm.")] * 4)


def convert(pairs: list[Pair]) -> tuple[list[str], float]:
    """JSON lines of the pairs that both sides of which were parsed, and processor seconds."""
    started = time.process_time()
    lines = []
    for name, first, second in pairs:
        trees = [_tree(text) for text in (first, second)]
        if all(trees):
            line = {"id": name, "premise": trees[0], "hypothesis": trees[1]}
            lines.append(json.dumps(line, ensure_ascii=False))
    return lines, time.process_time() - started


def _tree(text: str) -> dict[str, list[Any]] | None:
    sentences = conllu.parse(_pipeline.process(text, _error))
    if not sentences:
        return None
    words = [word for word in sentences[0] if isinstance(word["id"], int)]
    names = {"tokens": "form", "upos": "upos", "head": "head", "deprel": "deprel"}
    return {name: [word[column] for word in words] for name, column in names.items()}


def time_pipeline(pool: multiprocessing.pool.Pool, pairs: list[Pair]) -> Peer:
    chunks = [pairs[at : at + CHUNK] for at in range(0, len(pairs), CHUNK)]
    started = time.perf_counter()
    lines, processor = zip(*pool.imap_unordered(convert, chunks), strict=True)
    kept = sum(map(len, lines))
    return Peer(time.perf_counter() - started, sum(processor), kept)
