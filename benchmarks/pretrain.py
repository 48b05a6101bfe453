"""What objectives of pre-training cost: a step with each against plain masked language modelling.

    python -m benchmarks.pretrain [--rounds 9] [--only mlm,xpos] [--batch 32] [--steps 8]

The encoder is MicroBERT's (3 layers, width 128, relative positions), new; the runs are the real
loop over a real store: sentences of UD_English-EWT where PARSEBANK_DATA is set, else random trees,
eight parsed ones to one gold tree, batches of 32 as they come. In each round every condition takes
one step (forward, backward, AdamW) in turn, on one thread; what counts is the median over the
rounds of its ratio to the plain step of the same round, in CPU time, or on a GPU in wall time. The
waiting for data is the time until the next batch is on the device, after the first, which is given
apart: it opens the dataset and compiles or loads what is compiled. Memory is measured in a process
for each condition, over some steps: the peak of the process, and on a GPU that of torch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import torch

from benchmarks.result import write_result
from featurestore import DatasetHandle, ExampleRow, FeatureStore, ParseRecord, open_store
from service.tokenizers import load_tokenizer
from syntax import fingerprint, read_conllu
from syntax.alignment import segment_features
from syntax.examples import DatasetSpec
from syntax.trees.conllu import parse_from_sentences
from syntax.trees.parse import Parse
from syntax.trees.sentence import Sentence, Token, Word
from trainer.loop import Run
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.systems.microbert.recipes import condition

SILVER, GOLD, GOLD_EVERY = "silver", "gold", 8
SENTENCES, DEV = 4500, 32


@dataclass(frozen=True)
class Condition:
    """What is learned beside masked pieces, and how many times the plain step it may take."""

    objectives: tuple[str, ...] = ()
    sla: bool = False
    target: float = float("inf")


XPOS, PHRASE, TREE = "xpos_tagging.v1", "phrase.v1", "tree.v1"
CONDITIONS: Final = {
    "mlm": Condition(),
    "xpos": Condition((XPOS,), target=1.05),
    "sla": Condition(sla=True, target=1.05),
    "phrase": Condition((PHRASE,)),
    "tree": Condition((TREE,)),
    "phrase+tree": Condition((PHRASE, TREE), target=1.25),
    "all": Condition((XPOS, PHRASE, TREE), sla=True),
    "parser": Condition(("dependency.v1",)),
}
DATA_TARGET: Final = 0.01


# The examples


def sentences() -> tuple[str, list[Sentence]]:
    """Trees of sentences, and their source."""
    if folder := os.environ.get("PARSEBANK_DATA"):
        path = Path(folder) / "treebanks" / "UD_English-EWT" / "en_ewt-ud-train.conllu"
        return path.stem, list(islice(read_conllu(path), SENTENCES))
    rng = np.random.default_rng(0)
    return "random trees", [
        random_sentence(rng, int(rng.integers(4, 40))) for _ in range(SENTENCES)
    ]


def random_sentence(rng: np.random.Generator, size: int) -> Sentence:
    """Words of a tree that mean nothing."""
    forms = rng.choice(["the", "river", "is", "wide", "bees", "dance", "quietly"], size).tolist()
    heads = [int(rng.integers(1, at)) if at > 1 else 0 for at in range(1, size + 1)]
    words = [
        Word(at, form, upos="X", xpos=form[0].upper(), head=head, deprel="dep" if head else "root")
        for at, (form, head) in enumerate(zip(forms, heads, strict=True), 1)
    ]
    return Sentence(tuple(words), tuple(Token(word.form, (word.id,)) for word in words))


def fill(store: FeatureStore, trees: Sequence[Sentence]) -> None:
    """One gold sentence for every eight that pass for parsed ones."""
    parses = [parse_from_sentences([tree]) for tree in trees]
    dev, train = parses[:DEV], parses[DEV:]
    is_gold = [at % (GOLD_EVERY + 1) == GOLD_EVERY for at in range(len(train))]
    append(store, "raw", "train", [x for x, gold in zip(train, is_gold, strict=True) if not gold])
    append(store, "gold", "train", [x for x, gold in zip(train, is_gold, strict=True) if gold])
    append(store, "raw", "dev", dev)


def append(store: FeatureStore, mode: str, split: str, parses: Sequence[Parse]) -> None:
    tokenizer = load_tokenizer("parsebank-wordpiece-en")
    name = GOLD if mode == "gold" else SILVER
    spec = DatasetSpec(name, split, "en", ("text",), (), "gold" if mode == "gold" else "raw")
    handle = DatasetHandle(
        spec, tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens, matrices=False
    )
    parser = fingerprint([name])
    store.describe(parser, "parser", {"name": "gold" if mode == "gold" else "another/parser"})
    rows, records = [], []
    for seq, parse in enumerate(parses):
        key = fingerprint([mode, split, seq])
        records.append(ParseRecord(key, "en", parser, mode, parse))
        features = segment_features(parse, *tokenizer.encode(parse.text))
        rows.append(ExampleRow(seq, f"{seq}", key, parser, (parse.text,), (key,), (features,)))
    store.parses.append(records)
    store.features.append(handle, rows)


def recipe_of(name: str, batch: int) -> Recipe:
    """One condition; all that is not its own is the same for all."""
    chosen = CONDITIONS[name]
    settings = [
        *(f"data.dataset={SILVER}", f"data.gold={GOLD}", "data.lang=en", f"batch_size={batch}"),
        *("accumulation=1", "max_steps=1000000", "evaluate_every=1000000", "threads=1"),
    ]
    made = condition(name.replace("+", "-"), *chosen.objectives, sla=chosen.sla)
    return with_settings(made, settings)


# The measurement


def now(device: torch.device) -> tuple[float, float]:
    """CPU and wall clock, when the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.process_time(), time.perf_counter()


@dataclass
class Contender:
    """A run of one condition, stepped by hand; seconds of its first batch, of waits and steps."""

    run: Run
    first: float = 0.0
    wait: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._steps: Iterator[Any] = iter(())
        self._clock = 1 if self.device.type == "cuda" else 0

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        found: torch.device = self.run.accelerator.device
        return found

    def turn(self) -> None:
        """The next batch, and a step over it; at the end of an epoch the next one begins."""
        start = now(self.device)
        batches = next(self._steps, None)
        if batches is None:
            self._steps = self.run.epoch()
            batches = next(self._steps)
        there = now(self.device)
        self.run.step(batches)
        wait, step = there[self._clock] - start[self._clock], now(self.device)[self._clock]
        if not self.step:
            self.first, wait = there[1] - start[1], 0.0
        self.wait.append(wait)
        self.step.append(step - there[self._clock])


def measure(store: FeatureStore, folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Every condition in turn, round after round; the first two rounds warm up."""
    contenders = {
        name: Contender(Run(recipe_of(name, asked.batch), store, folder / name, ()))
        for name in asked.only
    }
    for number in range(asked.rounds + 2):
        for name, contender in contenders.items():
            contender.turn()
            print(f"round {number}: {name} {contender.step[-1]:.3f} s", file=sys.stderr)
    return {name: row(one, contenders["mlm"]) for name, one in contenders.items()}


def row(own: Contender, plain: Contender) -> dict[str, float]:
    """One condition against plain masked language modelling."""
    ratios = [mine / theirs for mine, theirs in zip(own.step[2:], plain.step[2:], strict=True)]
    wait, step = sum(own.wait[2:]), sum(own.step[2:])
    return {
        "step_seconds": round(median(own.step[2:]), 4),
        "times_mlm": round(median(ratios), 3),
        "data_share": round(wait / (wait + step), 4),
        "first_batch_seconds": round(own.first, 2),
    }


def memory_of(name: str, store: FeatureStore, folder: Path, asked: argparse.Namespace) -> None:
    """Train some steps of one condition in this process, and print its peaks in MiB."""
    contender = Contender(Run(recipe_of(name, asked.batch), store, folder / name, ()))
    for _ in range(asked.steps):
        contender.turn()
    found = {"rss_mib": round(peak_rss() / 2**20)}
    if contender.device.type == "cuda":
        found["cuda_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
    print(json.dumps(found))


def peak_rss() -> int:
    """Of this process, in bytes.

    Linux's ``getrusage`` begins with the peak of the process that started it.
    """
    status = Path("/proc/self/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def peaks(name: str, folder: Path, asked: argparse.Namespace) -> dict[str, int]:
    """The peaks of a process of its own."""
    numbers = (f"--batch={asked.batch}", f"--steps={asked.steps}")
    module = [sys.executable, "-m", "benchmarks.pretrain"]
    command = [*module, f"--memory={name}", f"--folder={folder}", *numbers]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, int] = json.loads(told.splitlines()[-1])
    return found


# Telling


def show(found: Mapping[str, Any]) -> None:
    print(f"\n{'':14}{'step s':>9}{'x mlm':>8}{'data':>8}{'first s':>9}{'RSS MiB':>9}{'CUDA':>7}")
    for name, one in found.items():
        print(
            f"{name:14}{one['step_seconds']:9.4f}{one['times_mlm']:8.3f}{one['data_share']:8.2%}"
            f"{one['first_batch_seconds']:9.2f}{one['rss_mib']:9}{one.get('cuda_mib', ''):>7}"
        )


def verdict(found: Mapping[str, Any]) -> Iterator[str]:
    """The targets that were missed."""
    for name, one in found.items():
        if one["times_mlm"] > CONDITIONS[name].target:
            yield f"{name}: {one['times_mlm']} times mlm, target {CONDITIONS[name].target}"
        if one["data_share"] >= DATA_TARGET:
            yield f"{name}: {one['data_share']:.2%} of the time waits for data"


def write(asked: argparse.Namespace, source: str, found: Mapping[str, Any]) -> None:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    content = {
        "note": asked.note,
        "trees": source,
        "batch": asked.batch,
        "rounds": asked.rounds,
        "conditions": found,
    }
    write_result("pretrain", content, libraries=["torch"], device=device)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A step of each condition of pre-training.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=32, help="examples of a step")
    parser.add_argument("--steps", type=int, default=8, help="steps over which memory is measured")
    parser.add_argument("--only", default=",".join(CONDITIONS), help="mlm is always measured")
    parser.add_argument("--note", default="", help="what else the result should say")
    parser.add_argument("--memory", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.only = [x for x in CONDITIONS if x == "mlm" or x in asked.only.split(",")]
    return asked


def main() -> int:
    if not torch.cuda.is_available():
        os.environ.setdefault("ACCELERATE_USE_CPU", "true")
    asked = arguments()
    if asked.memory:
        with open_store(Path(asked.folder) / "store") as store:
            memory_of(asked.memory, store, Path(asked.folder), asked)
        return 0
    source, trees = sentences()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_store(folder / "store") as store:
            fill(store, trees)
            found = measure(store, folder, asked)
        for condition_name, one in found.items():
            one.update(peaks(condition_name, folder, asked))
    show(found)
    missed = list(verdict(found))
    print("missed: " + "; ".join(missed) if missed else "all targets met")
    write(asked, source, found)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
