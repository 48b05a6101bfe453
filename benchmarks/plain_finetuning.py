"""Are our baselines as good as plain fine-tuning? The recipes without trees, beside transformers.

    python -m benchmarks.plain_finetuning --data DATA --encoder FOLDER [--tasks cola,wikiann]

Both sides have the same encoder, sentences, size of batches, rate, passes and seeds, draw batches
without regard to length, and are scored by their last weights. The other side is a loop over
``AutoModelFor...``, its own tokenizer calls and its own batches, so that a fault of ours in any of
these shows. BERT's models read a sentence from a pooler, which is new where the encoder has none;
our recipes from a new layer over the first piece. A call again goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    get_linear_schedule_with_warmup,
)

from benchmarks.result import write_result
from trainer.metrics.entities import entity_scores

IGNORED: Final = -100


@dataclass(frozen=True)
class Task:
    """A benchmark: files of train and dev as (name, first line, last line), and what is scored."""

    recipe: str
    train: tuple[str, int, int | None]
    dev: tuple[str, int, int | None]
    metric: str
    columns: tuple[int, ...] = ()


TASKS: Final = {
    "cola": Task("sla-cola", ("cola_train.tsv", 0, None), ("cola_dev.tsv", 0, None), "mcc", (3, 1)),
    "xnli": Task("xnli", ("test-en.tsv", 0, None), ("dev-en.tsv", 0, None), "accuracy", (0, 1, 2)),
    "pawsx": Task(
        "pawsx", ("dev-en.tsv", 0, 1500), ("dev-en.tsv", 1500, None), "accuracy", (0, 1, 2)
    ),
    "wikiann": Task("wikiann", ("train-en.tsv", 0, 40_000), ("dev-en.tsv", 0, 20_000), "f1"),
}
"""Columns are of texts, then of the label; a file without columns has a token and a tag a line."""


def divide(task: str, source: Path, folder: Path) -> None:
    """Write the lines of both splits under the names that our reader expects."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev"):
        name, first, end = getattr(TASKS[task], split)
        with (source / name).open("rb") as lines:
            part = b"".join(islice(lines, first, end))
        own = f"cola_{split}.tsv" if task == "cola" else f"{split}-en.tsv"
        if not TASKS[task].columns:  # whole sentences
            part = part[: part.rindex(b"\n\n") + 2]
        (folder / own).write_bytes(part)


def examples(task: str, folder: Path, split: str) -> list[tuple[Any, Any]]:
    """Texts and label, or tokens and tags, of each example."""
    (path,) = folder.glob(f"*{split}*")
    text = path.read_text(encoding="utf-8")
    if columns := TASKS[task].columns:
        rows = [line.split("\t") for line in text.splitlines() if line]
        return [(tuple(row[at] for at in columns[:-1]), row[columns[-1]]) for row in rows]
    sentences = [[line.split("\t") for line in part.splitlines()] for part in text.split("\n\n")]
    columns_of = [list(zip(*one, strict=True)) for one in sentences if one]
    return [(tokens, tags) for tokens, tags in columns_of]


class Plain:
    """Fine-tuning without anything of ours."""

    def __init__(self, task: str, folder: Path, arguments: argparse.Namespace) -> None:
        self.is_tagging, self.metric = not TASKS[task].columns, TASKS[task].metric
        self.arguments = arguments
        self.tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
        self.train, self.dev = (examples(task, folder, split) for split in ("train", "dev"))
        labels = [one for _, one in self.train]
        names = {tag for tags in labels for tag in tags} if self.is_tagging else set(labels)
        self.names = sorted(names)

    def encode(self, chosen: Sequence[tuple[Any, Any]]) -> Any:
        options = {"padding": True, "truncation": True, "max_length": 128, "return_tensors": "pt"}
        if self.is_tagging:
            tokens = [list(one) for one, _ in chosen]
            return self.tokenizer(tokens, is_split_into_words=True, **options)
        texts = [list(column) for column in zip(*(one for one, _ in chosen), strict=True)]
        return self.tokenizer(*texts, **options)

    def labels(self, chosen: Sequence[tuple[Any, Any]], encoded: Any) -> Tensor:
        """Ids of classes, or of the tags of first pieces."""
        if not self.is_tagging:
            return torch.tensor([self.names.index(label) for _, label in chosen])
        labels = torch.full(encoded["input_ids"].shape, IGNORED)
        for row, (_, tags) in enumerate(chosen):
            for at, word in first_pieces(encoded.word_ids(row)):
                labels[row, at] = self.names.index(tags[word])
        return labels

    def score(self, seed: int) -> float:
        arguments = self.arguments
        torch.manual_seed(seed)
        kinds = (AutoModelForSequenceClassification, AutoModelForTokenClassification)
        model = kinds[self.is_tagging].from_pretrained(
            arguments.encoder, num_labels=len(self.names)
        )
        steps = arguments.epochs * -(-len(self.train) // arguments.batch_size)
        optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.rate, weight_decay=0.0)
        schedule = get_linear_schedule_with_warmup(optimizer, 0, steps)
        model.train()
        for _ in range(arguments.epochs):
            order = torch.randperm(len(self.train)).tolist()
            for at in range(0, len(order), arguments.batch_size):
                chosen = [self.train[one] for one in order[at : at + arguments.batch_size]]
                encoded = self.encode(chosen)
                model(**encoded, labels=self.labels(chosen, encoded)).loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        return self.evaluate(model.eval())

    @torch.no_grad()
    def evaluate(self, model: Any) -> float:
        gold: list[Any] = []
        found: list[Any] = []
        for at in range(0, len(self.dev), 64):
            chosen = self.dev[at : at + 64]
            encoded = self.encode(chosen)
            ids = model(**encoded).logits.argmax(-1).tolist()
            gold += [label for _, label in chosen]
            found += self._tags(gold[at:], encoded, ids) if self.is_tagging else ids
        if self.is_tagging:
            return entity_scores(gold, found)[""].f1
        ids = np.array([self.names.index(label) for label in gold])
        if self.metric == "mcc":
            return float(np.corrcoef(ids, found)[0, 1]) if len(set(found)) > 1 else 0.0
        return float((ids == np.array(found)).mean())

    def _tags(
        self, gold: Sequence[Sequence[str]], encoded: Any, ids: Sequence[Sequence[int]]
    ) -> Iterator[list[str]]:
        """The tag of each token, of its first piece; O where truncation has taken it."""
        for row, words in enumerate(gold):
            tags = ["O"] * len(words)
            for at, word in first_pieces(encoded.word_ids(row)):
                tags[word] = self.names[ids[row][at]]
            yield tags


def first_pieces(words: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """Place and word of each word's first piece."""
    for at, word in enumerate(words):
        if word is not None and word not in words[:at]:
            yield at, word


def kept(plain: Plain, seed: int, folder: Path) -> float:
    path = folder / f"transformers-{seed}.json"
    if not path.exists():
        path.write_text(json.dumps(plain.score(seed)), encoding="utf-8")
    return float(json.loads(path.read_text(encoding="utf-8")))


def ours(task: str, folder: Path, seed: int, arguments: argparse.Namespace) -> float:
    """The recipe without trees, by its commands."""
    chosen, store, run = TASKS[task], folder / "store", folder / f"seed{seed}"
    if not (folder / "filled").exists():
        where = ("--path", folder / "files", "--split", "train,dev", "--lang", "en")
        encoder = ("--tokenizer", arguments.encoder, "--no-matrices", "--store", store)
        _parsebank("backfill", task, *where, *encoder)
        (folder / "filled").touch()
    if not (run / "result.json").exists():
        settings = [
            *(f"model.encoder={arguments.encoder}", "model.use_syntax=false", "keep=last"),
            *(f"epochs={arguments.epochs}", f"learning_rate={arguments.rate}", "accumulation=1"),
            *(f"batch_size={arguments.batch_size}", "evaluate_every=epoch", "bucket=false"),
        ]
        sets = [part for one in settings for part in ("--set", one)]
        _parsebank("train", chosen.recipe, "--store", store, "--output", run, "--seed", seed, *sets)
    _parsebank("evaluate", run, "--store", store, "--split", "dev")
    found = json.loads((run / "evaluation-dev.json").read_text(encoding="utf-8"))
    return float(found["languages"]["en"][chosen.metric])


def _parsebank(*arguments: object) -> None:
    command = (sys.executable, "-P", "-m", "parsebank", *map(str, arguments))
    subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--work", type=Path, default=Path("plain-finetuning"))
    arguments = parser.parse_args()
    found = {}
    for task in arguments.tasks.split(","):
        name = f"{task}-{arguments.encoder.name}-{arguments.epochs}-{arguments.batch_size}"
        folder = arguments.work.absolute() / f"{name}-{arguments.rate:g}"
        divide(task, arguments.data / "benchmarks" / task, folder / "files")
        plain, seeds = Plain(task, folder / "files", arguments), range(1, arguments.seeds + 1)
        scores = {
            "ours": [100 * ours(task, folder, seed, arguments) for seed in seeds],
            "transformers": [100 * kept(plain, seed, folder) for seed in seeds],
        }
        found[task] = {"metric": TASKS[task].metric, "train": len(plain.train), **scores}
        for side, values in scores.items():
            print(f"{task} {side}: {fmean(values):.2f} {TASKS[task].metric}, seeds {values}")
    settings = {name: str(value) for name, value in vars(arguments).items() if name != "data"}
    content = {"settings": settings, "tasks": found}
    write_result("plain-finetuning", content, libraries=("torch", "transformers"))


if __name__ == "__main__":
    main()
