"""UDPipe by itself, in a pool of processes; as a command, of the texts in a file."""

from __future__ import annotations

import json
import multiprocessing.pool
import sys
import time
from pathlib import Path

import ufal.udpipe

from service.processes import lower_priority

CHUNK = 50
"""Texts that a raw process takes at a time: balanced, and too many for the overhead to matter."""

WARM_UP = [f"The {word} is warm." for word in ("engine", "water", "room", "tea")] * 4

JOB_NICENESS = 10
"""As the workers of jobs have it; else, where others use the machine too, they would come last."""

Raw = tuple[float, float, int]
"""Wall-clock seconds, processor seconds, words."""

_model: ufal.udpipe.Model


def load_raw(path: str, niceness: int = JOB_NICENESS) -> None:
    global _model
    lower_priority(niceness)
    _model = ufal.udpipe.Model.load(path)
    parse_raw(WARM_UP)


def parse_raw(texts: list[str]) -> tuple[int, float]:
    words, started = 0, time.process_time()
    for text in texts:
        tokenizer = _model.newTokenizer("ranges")
        tokenizer.setText(text)
        sentence = ufal.udpipe.Sentence()
        while tokenizer.nextSentence(sentence):
            _model.tag(sentence, "")
            _model.parse(sentence, "")
            words += len(sentence.words) - 1
    return words, time.process_time() - started


def time_raw(pool: multiprocessing.pool.Pool, texts: list[str]) -> Raw:
    chunks = [texts[at : at + CHUNK] for at in range(0, len(texts), CHUNK)]
    started = time.perf_counter()
    words, processor = zip(*pool.imap_unordered(parse_raw, chunks), strict=True)
    return time.perf_counter() - started, sum(processor), sum(words)


def main() -> None:
    texts, model, workers = sys.argv[1:]
    with multiprocessing.get_context("spawn").Pool(int(workers), load_raw, (model, 0)) as pool:
        time_raw(pool, json.loads(Path(texts).read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
