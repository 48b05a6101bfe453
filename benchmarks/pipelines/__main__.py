"""Hours from a raw benchmark to the data of the first epoch: the papers' way and ours.

    python -m benchmarks.pipelines [--rounds 1] [--core 0]

Of three published pipelines a sample goes both ways, on one core and in turns:

* *Syntax-MBERT, XNLI*: UDPipe, distances between the pieces of a pair.
* *lr-sib, MicroBERT's Wolof*: Stanza, masks of local attention. The only Stanza model at hand is
  French, so both parse French sentences.
* *structural-probes, EWT*: gold trees, distances between words.

*first* is everything: parsing, alignment with wordpieces, and the matrices of one epoch. *second*
is another run over the same benchmark: the papers' code keeps its parsed file, ours its store. No
training step is in either. Seconds are processor seconds of all processes. What each way takes for
an example is extrapolated to the whole benchmark; what it takes whatever the size (start, loading
of models) is added once. It needs PARSEBANK_DATA and the extras `train` and `stanza`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.backfill.cold import PARSEBANK, run
from benchmarks.backfill.corpus import Corpus, read_corpora, settings
from benchmarks.pipelines import theirs
from benchmarks.result import write_result
from featurestore import open_store
from service.parsers import find_parser
from syntax.trees.conllu import read_conllu, write_conllu

DATA: Final = Path(os.environ.get("PARSEBANK_DATA", "data"))
TOKENIZER: Final = str(DATA / "tokenizers" / "bert-base-multilingual-cased")
BATCH: Final = 32
WAYS: Final = ("theirs", "ours")
TIMES: Final = ("first", "second")

Seconds = Mapping[str, float]
"""Processor seconds: ``prepare`` once for a benchmark, ``epoch`` in every run."""


@dataclass(frozen=True)
class Pipeline:
    """A published pipeline.

    Attributes:
        name: System and benchmark.
        examples: Of the whole benchmark.
        sample: Examples that are measured.
        theirs: Seconds of so many examples, in a folder.
        ours: Likewise.
    """

    name: str
    examples: int
    sample: int
    theirs: Callable[[int, Path], Seconds]
    ours: Callable[[int, Path], Seconds]


def clocked(call: Callable[[], object]) -> float:
    """Processor seconds of a call in this process."""
    started = time.process_time()
    call()
    return time.process_time() - started


def exhaust(matrices: Iterable[object]) -> None:
    """Go through all, as a loop of training does."""
    for _ in matrices:
        pass


# Their ways


def _corpus(lang: str) -> Corpus:
    return next(one for one in read_corpora() if one.lang == lang)


def syntax_mbert(count: int, folder: Path) -> Seconds:
    """Pairs of XNLI by way of JSON lines."""
    path, pairs = folder / "pairs.jsonl", _corpus("en").pairs[:count]
    model = Path(str(find_parser(settings("en"), lang="en").path))
    return {
        "prepare": clocked(lambda: theirs.prepare_pairs(pairs, model, path)),
        "epoch": clocked(lambda: exhaust(theirs.epoch_of_pairs(path, TOKENIZER))),
    }


def lr_sib(count: int, folder: Path) -> Seconds:
    """French sentences by way of JSON lines."""
    path, texts = folder / "sentences.jsonl", _corpus("fr").texts[:count]
    models = DATA / "models" / "stanza"
    return {
        "prepare": clocked(lambda: theirs.prepare_sentences(texts, models, path)),
        "epoch": clocked(lambda: exhaust(theirs.epoch_of_sentences(path, TOKENIZER))),
    }


def structural_probes(count: int, folder: Path) -> Seconds:
    """Gold trees; there is nothing to prepare."""
    path = _treebank(count, folder)
    return {
        "prepare": 0.0,
        "epoch": clocked(lambda: exhaust(theirs.epoch_of_treebank(path))),
    }


def _treebank(count: int, folder: Path) -> Path:
    """The first sentences of EWT as a treebank of its own."""
    path = folder / "treebank" / "en_ewt-ud-train.conllu"
    path.parent.mkdir()
    source = DATA / "treebanks" / "UD_English-EWT" / path.name
    write_conllu(list(islice(read_conllu(source), count)), path)
    return path


# Our ways


def _stored(folder: Path, stream: Mapping[str, Any], *what: str) -> Seconds:
    """A backfill, and one epoch of its stream; again, what the second time takes."""
    store = folder / "store"
    command = (*PARSEBANK, "backfill", *what, "--tokenizer", TOKENIZER, "--no-matrices")
    costs = [run(*command, "--store", str(store))[1] for _ in TIMES]
    with open_store(store) as opened:
        (dataset,) = opened.datasets()
        data = opened.dataset(dataset.name)
        options = {"batch_size": BATCH, "epoch": 0, **stream}
        epoch = clocked(lambda: exhaust(data.stream(**options)))
    return {"prepare": costs[0], "again": costs[1], "epoch": epoch}


def our_xnli(count: int, folder: Path) -> Seconds:
    """The same pairs."""
    stream = {"matrices": ("distance",), "max_length": theirs.LONGEST}
    where = ("--path", str(DATA / "benchmarks" / "xnli"), "--split", "dev", "--lang", "en")
    return _stored(folder, stream, "xnli", *where, "--limit", str(count))


def our_sentences(count: int, folder: Path) -> Seconds:
    """The same sentences, by the same Stanza model."""
    path = folder / "texts.txt"
    path.write_text("\n".join(_corpus("fr").texts[:count]) + "\n", encoding="utf-8")
    mask = f"sla_mask(threshold={theirs.NEAR},variant=as_released)"
    where = ("--path", str(path), "--split", "whole", "--lang", "fr", "--mode", "sentence")
    return _stored(folder, {"matrices": (mask,)}, "text", *where, "--parser", "stanza/fr")


def our_treebank(count: int, folder: Path) -> Seconds:
    """The same gold trees; words are the positions."""
    _treebank(count, folder)
    where = ("--path", str(folder / "treebank"), "--split", "train", "--lang", "en")
    stream = {"matrices": ("distance",), "policy": "none", "max_length": None}
    return _stored(folder, stream, "ud", *where, "--mode", "gold")


PIPELINES: Final = (
    Pipeline("Syntax-MBERT, XNLI", 392_702, 2400, syntax_mbert, our_xnli),
    Pipeline("lr-sib, MicroBERT's Wolof", 34_064, 1000, lr_sib, our_sentences),
    Pipeline("structural-probes, EWT", 12_544, 12_544, structural_probes, our_treebank),
)


# The measurement


def hours(whole: int, sample: int, small: Seconds, large: Seconds) -> dict[str, float]:
    """Hours of the whole benchmark, from those of one example and of the sample.

    Args:
        whole: Examples of the benchmark.
        sample: Examples of ``large``.
        small: Seconds of one example: nearly all is what any size takes.
        large: Seconds of the sample.
    """

    def of(part: str) -> float:
        each = max(large[part] - small[part], 0.0) / (sample - 1)
        return small[part] + each * (whole - 1)

    epoch = of("epoch")
    again = of("again") if "again" in large else 0.0
    return {"first": (of("prepare") + epoch) / 3600, "second": (again + epoch) / 3600}


def in_its_own_process(number: int, way: str, count: int) -> Seconds:
    """One way of one pipeline, in a new process, so that nothing of the other is loaded."""
    command = (
        sys.executable,
        "-P",
        "-m",
        "benchmarks.pipelines",
        "--one",
        f"{number} {way} {count}",
    )
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds: Seconds = json.loads(found.stdout.splitlines()[-1])
    return seconds


def one(number: int, way: str, count: int) -> None:
    """What `in_its_own_process` starts."""
    pipeline = PIPELINES[number]
    with tempfile.TemporaryDirectory() as folder:
        measured = pipeline.theirs if way == "theirs" else pipeline.ours
        print(json.dumps(measured(count, Path(folder))))


def measure(rounds: int) -> Iterator[dict[str, Any]]:
    """Every pipeline, both ways in turns."""
    for number, pipeline in enumerate(PIPELINES):
        told: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        raw: dict[str, list[Any]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                sizes = [in_its_own_process(number, way, n) for n in (1, pipeline.sample)]
                raw[way].append(sizes)
                told[way].append(hours(pipeline.examples, pipeline.sample, *sizes))
        yield {
            "pipeline": pipeline.name,
            "examples": pipeline.examples,
            "sample": pipeline.sample,
            "hours": {
                way: {name: round(median(one[name] for one in told[way]), 4) for name in TIMES}
                for way in WAYS
            },
            "seconds": raw,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--core", type=int, default=0, help="the core that all runs on")
    parser.add_argument(
        "--one", help="number of a pipeline, way and examples: a single measurement"
    )
    chosen = parser.parse_args()
    if chosen.one:
        number, way, count = chosen.one.split()
        one(int(number), way, int(count))
        return
    os.sched_setaffinity(0, {chosen.core})
    os.environ.update(OMP_NUM_THREADS="1", PARSEBANK_MODELS_DIR=str(DATA / "models"))
    found = []
    for row in measure(chosen.rounds):
        found.append(row)
        print(row["pipeline"], json.dumps(row["hours"]), flush=True)
    content = {
        "rounds": chosen.rounds,
        "extrapolated": "from the sample to all examples, by processor seconds",
        "pipelines": found,
    }
    write_result("pipelines", content, used=1)


if __name__ == "__main__":
    main()
