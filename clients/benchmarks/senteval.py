"""SentEval's probing tasks of sentence vectors (Conneau et al. 2018).

Each task is a file with all three splits. The sentences come from the Toronto Book Corpus and are
not shipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import ANY, Benchmark, Item, Names, Part, attempt, register
from clients.benchmarks.lines import Line, numbered_lines
from clients.files import plain_path
from syntax.errors import ExampleError, LabelError
from syntax.examples import TOKEN_MODES, Example, LabelSpec, Mode, Segment

SPLITS: Final = {"tr": "train", "va": "dev", "te": "test"}

COLUMNS: Final = 3
"""Fewest columns of a line; columns between the label and the sentence are ignored."""


@dataclass(frozen=True, slots=True)
class _Task:
    name: str
    quirk: str
    names: tuple[str, ...] = ()
    is_class: Callable[[str], object] = str.isdecimal


TASKS: Final = (
    _Task("sentence_length", "label is a bin: 5-8 words, 9-12, 13-16, 17-20, 21-25, 26-28"),
    _Task("word_content", "label is the one of 1,000 words that the sentence has", is_class=str),
    _Task(
        "tree_depth",
        "label is the depth of the constituent tree that a parser found; a model that reads "
        "parses is told part of the answer",
    ),
    _Task(
        "top_constituents",
        "label is the sequence of constituents below S that a parser found; a model that reads "
        "parses is told part of the answer",
        names=(
            *("ADVP_NP_VP_.", "CC_ADVP_NP_VP_.", "CC_NP_VP_.", "IN_NP_VP_.", "NP_ADVP_VP_."),
            *("NP_NP_VP_.", "NP_PP_.", "NP_VP_.", "OTHER", "PP_NP_VP_.", "RB_NP_VP_."),
            *("SBAR_NP_VP_.", "SBAR_VP_.", "S_CC_S_.", "S_NP_VP_.", "S_VP_.", "VBD_NP_VP_."),
            *("VP_.", "WHADVP_SQ_.", "WHNP_SQ_."),
        ),
    ),
    _Task("bigram_shift", "label I: two neighbouring words are exchanged", names=("I", "O")),
    _Task("past_present", "label is the tense of the main verb", names=("PAST", "PRES")),
    _Task("subj_number", "label NNS: the main clause's subject is plural", names=("NN", "NNS")),
    _Task("obj_number", "label NNS: the main clause's object is plural", names=("NN", "NNS")),
    _Task("odd_man_out", "label C: a noun or verb is replaced", names=("C", "O")),
    _Task("coordination_inversion", "label I: two clauses are exchanged", names=("I", "O")),
)


def _find(folder: Path, *, task: _Task) -> Sequence[Part]:
    files = (path for path in folder.iterdir() if plain_path(path).name == f"{task.name}.txt")
    return [Part(split, "en", (path,)) for path in files for split in SPLITS.values()]


def _read(part: Part, mode: Mode, *, task: _Task) -> Iterator[Item]:  # noqa: ARG001
    for path in part.files:
        for line in numbered_lines(path):
            # A line that names no split is rejected once, with those of train.
            split = SPLITS.get(line.raw.partition(b"\t")[0].decode("utf-8", "replace"), "train")
            if part.split in (split, ANY):
                example_id = f"{split}-{line.number}"
                yield attempt(example_id, _example, line, task)


def _example(example_id: str, line: Line, task: _Task) -> Example:
    where = line.where
    fields = line.text().split("\t")
    if len(fields) < COLUMNS or fields[0] not in SPLITS or not fields[-1].split():
        raise ExampleError(f"{where} is not tr, va or te, a label and a sentence, separated by TAB")
    label = fields[1]
    if label not in task.names if task.names else not task.is_class(label):
        expected = f"one of {', '.join(task.names)}" if task.names else "a class of the task"
        raise LabelError(f"{where} has the label {label!r}; expected {expected}")
    return Example(example_id, (Segment(tokens=tuple(fields[-1].split())),), {"label": label})


def _names(parts: Sequence[Part], *, task: _Task) -> Names:
    files = dict.fromkeys(path for part in parts for path in part.files)
    items = (item for path in files for item in _read(Part(ANY, ANY, (path,)), "raw", task=task))
    found = {str(item.labels["label"]) for item in items if isinstance(item, Example)}
    return {"label": tuple(sorted(found, key=lambda name: (len(name) * name.isdecimal(), name)))}


def _benchmark(task: _Task) -> Benchmark:
    return Benchmark(
        name=f"senteval_{task.name}",
        fields=("sentence",),
        labels=(LabelSpec("label", "class", task.names),),
        modes=TOKEN_MODES,
        layout=f"the file {task.name}.txt, or its folder",
        source="Conneau et al. 2018, What you can cram into a single vector (SentEval)",
        licence="BSD; the sentences come from the Toronto Book Corpus, for research",
        find=partial(_find, task=task),
        read_part=partial(_read, task=task),
        ids="{split}-{line}; lines are counted through the whole file",
        rejects={
            "example": "a line that is not tr, va or te, a label and a sentence",
            "label": "another label than those of the task",
            "invalid_character": "a line that is not UTF-8",
        },
        langs=("en",),
        quirks=(task.quirk, "a file has all splits; a line without a split counts as train"),
        names_in=None if task.names else partial(_names, task=task),
        # Any word is a class of word_content, so that it fits the files of all others.
        general=task.name == "word_content",
    )


SENTEVAL: Final = tuple(register(_benchmark(task)) for task in TASKS)
