"""The benchmarks of the comparison: their files, cut, and what both sides are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.plain_finetuning.passages import Passages
from benchmarks.plain_finetuning.plain import (
    Classes,
    Correlated,
    Example,
    Plain,
    Setting,
    Tags,
    Utterances,
)
from benchmarks.plain_finetuning.trees import Trees

Cut = tuple[str, int, int | None]
"""A source below the data folder, its first unit, and the one after the last."""

SPLITS: Final = ("train", "dev")
_BOTH: Final = Setting("", 3, 16, 1e-4, 1e-4, warmup=0.0, max_length=128)


@dataclass(frozen=True)
class Task:
    """A benchmark.

    Attributes:
        divide: Writes the files of both splits, under the names that our reader expects.
        read: Examples of a split of these files.
        metric: As our evaluation calls it.
    """

    reader: str
    recipe: str
    metric: str
    plain: type[Plain]
    divide: Callable[[Path, Path], None]
    read: Callable[[Path, str], list[Example]]
    setting: Setting = _BOTH
    settings: tuple[str, ...] = ()
    backfill: tuple[str, ...] = ()


def _divide_units(cuts: Sequence[Cut], name: str, divider: str, data: Path, folder: Path) -> None:
    """Files of lines, or of sentences that an empty line ends."""
    for split, (source, first, end) in zip(SPLITS, cuts, strict=True):
        units = (data / "benchmarks" / source).read_text(encoding="utf-8").split(divider)
        part = divider.join(units[first:end]).rstrip("\n") + divider
        (folder / name.format(split)).write_text(part, encoding="utf-8")


def _divide_treebank(data: Path, folder: Path) -> None:
    for split, count in (("train", 3000), ("dev", None)):
        source = data / "treebanks" / "UD_English-EWT" / f"en_ewt-ud-{split}.conllu"
        units = source.read_text(encoding="utf-8").split("\n\n")[:count]
        text = "\n\n".join(units).rstrip("\n") + "\n\n"
        (folder / source.name).write_text(text, encoding="utf-8")


def _divide_utterances(data: Path, folder: Path) -> None:
    for split, source in (("train", "train"), ("dev", "valid")):
        (folder / split).mkdir(exist_ok=True)
        for file in (data / "benchmarks" / "atis" / source).iterdir():
            (folder / split / file.name).write_bytes(file.read_bytes())


def _divide_articles(data: Path, folder: Path) -> None:
    whole = json.loads((data / "benchmarks" / "xquad" / "xquad.en.json").read_bytes())
    for split, first, end in (("train", 0, 36), ("dev", 36, None)):
        part = {"version": "1.1", "data": whole["data"][first:end]}
        (folder / f"{split}-v1.1.json").write_text(json.dumps(part), encoding="utf-8")


def _texts(columns: Sequence[int], folder: Path, split: str) -> list[Example]:
    """Columns of the texts, then the one of the label."""
    (path,) = folder.glob(f"*{split}*")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [(tuple(row[at] for at in columns[:-1]), row[columns[-1]]) for row in rows]


def _tagged(folder: Path, split: str) -> list[Example]:
    (path,) = folder.glob(f"*{split}*")
    units = path.read_text(encoding="utf-8").split("\n\n")
    sentences = [[line.split("\t") for line in unit.splitlines()] for unit in units if unit.strip()]
    return [tuple(map(list, zip(*one, strict=True))) for one in sentences]  # type: ignore[misc]


def _utterances(folder: Path, split: str) -> list[Example]:
    names = ("seq.in", "seq.out", "label")
    columns = [(folder / split / name).read_text(encoding="utf-8").splitlines() for name in names]
    return [
        (words.split(), (tags.split(), intent.strip()))
        for words, tags, intent in zip(*columns, strict=True)
    ]


def _trees(folder: Path, split: str) -> list[Example]:
    (path,) = folder.glob(f"*-ud-{split}.conllu")
    found = []
    for unit in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in unit.splitlines() if line and line[0] != "#"]
        words = [row for row in rows if row[0].isdigit()]
        tree = [(int(row[6]), row[7]) for row in words]
        found.append(([row[1] for row in words], tree))
    return [one for one in found if one[0]]


def _questions(folder: Path, split: str) -> list[Example]:
    whole: Mapping[str, Any] = json.loads((folder / f"{split}-v1.1.json").read_bytes())
    return [
        (
            (asked["question"], paragraph["context"]),
            [(one["answer_start"], one["text"]) for one in asked["answers"]],
        )
        for article in whole["data"]
        for paragraph in article["paragraphs"]
        for asked in paragraph["qas"]
    ]


def _lines(train: Cut, dev: Cut, name: str = "{}-en.tsv") -> Callable[[Path, Path], None]:
    return partial(_divide_units, (train, dev), name, "\n")


def _sentences(train: Cut, dev: Cut) -> Callable[[Path, Path], None]:
    return partial(_divide_units, (train, dev), "{}-en.tsv", "\n\n")


_PAIRS: Final = partial(_texts, (0, 1, 2))

TASKS: Final[Mapping[str, Task]] = {
    "cola": Task(
        *("cola", "sla-cola", "mcc", Correlated),
        _lines(("cola/cola_train.tsv", 0, None), ("cola/cola_dev.tsv", 0, None), "cola_{}.tsv"),
        partial(_texts, (3, 1)),
    ),
    "xnli": Task(
        *("xnli", "xnli", "accuracy", Classes),
        _lines(("xnli/test-en.tsv", 0, None), ("xnli/dev-en.tsv", 0, None)),
        _PAIRS,
    ),
    "pawsx": Task(
        *("pawsx", "pawsx", "accuracy", Classes),
        _lines(("pawsx/dev-en.tsv", 0, 1500), ("pawsx/dev-en.tsv", 1500, None)),
        _PAIRS,
    ),
    "wikiann": Task(
        *("wikiann", "wikiann", "f1", Tags),
        _sentences(("wikiann/train-en.tsv", 0, 4000), ("wikiann/dev-en.tsv", 0, 2000)),
        _tagged,
    ),
    "atis": Task(
        *("atis", "sgnet-atis", "slot_f1", Utterances),
        _divide_utterances,
        _utterances,
        settings=("weight_decay=0", "epsilon=1e-8"),
    ),
    "xquad": Task(
        *("squad", "squad", "f1", Passages),
        _divide_articles,
        _questions,
        Setting("", 5, 16, 2e-4, 2e-4, warmup=0.1, max_length=256),
        (
            *("data.level=document", "data.stride=64", "task.normalisation=sequence"),
            "task.sentence_head=false",
        ),
    ),
    "ud": Task(
        *("ud", "parser", "las_subtypes", Trees),
        _divide_treebank,
        _trees,
        Setting("", 3, 16, 5e-5, 1e-3, warmup=0.1, max_length=256),
        (
            *("task.parser.states=last", "task.parser.pieces=first", "task.upos=false"),
            "task.decoding=greedy",
        ),
        ("--mode", "gold", "--expand-words"),
    ),
}
