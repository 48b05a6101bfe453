"""PrOnto: five tasks on the verses of a Bible translation, projected from English OntoNotes.

Pairs of verses were divided into splits after the pairing, so a verse of a test pair may be in
training pairs too. The readers ``pronto_..._disjoint`` leave such pairs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Part, attempt, named_parts, register
from clients.benchmarks.disjoint import without_shared_texts
from clients.benchmarks.lines import Line, numbered_lines
from syntax.errors import ExampleError, LabelError
from syntax.examples import Example, LabelSpec, LabelValue, Mode, Segment

MOST_MENTIONS: Final = 3
"""Numbers of mentions that are told apart, as in the paper: 3 means three or more."""

_REFERENCES = 2
"""Columns with the verses' places that newer files have after the label."""

Record = Mapping[str, str]


def _label(record: Record) -> Mapping[str, LabelValue]:
    return {"label": record["label"]}


def _sense(record: Record) -> Mapping[str, LabelValue]:
    return {"label": record["label"], "sense": record["sense"]}


def _mentions(record: Record) -> Mapping[str, LabelValue]:
    count = record["mentions"]
    if not (count.isascii() and count.isdecimal()):
        raise LabelError(f"{count!r} mentions; expected a number")
    return {"label": str(min(int(count), MOST_MENTIONS)), "mentions": float(count)}


@dataclass(frozen=True, slots=True)
class _Task:
    name: str
    quirk: str
    columns: tuple[str, ...]
    names: tuple[str, ...]
    others: tuple[LabelSpec, ...] = ()
    labels: Callable[[Record], Mapping[str, LabelValue]] = _label

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(column for column in self.columns if column.startswith("verse"))


_PAIR = ("sense", "verse1", "verse2", "label")
_BY_SENSE = (LabelSpec("sense", "string"),)

TASKS: Final = (
    _Task(
        "nonpronominal_mention",
        "label is capped at 3, as in the paper's evaluation; mentions is the whole count, which "
        "leaves out English mentions of one word that begins like a pronoun, such as Israel",
        columns=("verse", "mentions"),
        names=tuple(map(str, range(MOST_MENTIONS + 1))),
        others=(LabelSpec("mentions", "float"),),
        labels=_mentions,
    ),
    _Task(
        "proper_noun_subject",
        "label 1: a proper noun is in the subject of the English verse",
        columns=("verse", "label"),
        names=("0", "1"),
    ),
    _Task(
        "sentence_mood",
        "label is the mood of the English verse's sentence",
        columns=("verse", "label"),
        names=("declarative", "imperative", "interrogative"),
    ),
    _Task(
        "same_sense",
        "label: have both English verses a verb of the sense that the column sense names?",
        columns=_PAIR,
        names=("different", "same"),
        others=_BY_SENSE,
        labels=_sense,
    ),
    _Task(
        "same_arg_count",
        "label: has the verb of the column sense as many arguments in both English verses?",
        columns=_PAIR,
        names=("different", "same"),
        others=_BY_SENSE,
        labels=_sense,
    ),
)


def _read(part: Part, mode: Mode, *, task: _Task) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    for line in numbered_lines(path):
        example_id = f"{part.split}-{line.number}"
        yield attempt(example_id, _example, line, task)


def _example(example_id: str, line: Line, task: _Task) -> Example:
    values = line.text().split("\t")
    if not len(task.columns) <= len(values) <= len(task.columns) + _REFERENCES:
        raise ExampleError(
            f"{line.where} has {len(values)} fields; expected {', '.join(task.columns)}, "
            "separated by TAB, and at most two references after them"
        )
    record = dict(zip(task.columns, values, strict=False))
    labels = task.labels(record)
    if labels["label"] not in task.names:
        raise LabelError(
            f"{line.where} has the label {labels['label']!r}; "
            f"expected one of {', '.join(task.names)}"
        )
    return Example(example_id, tuple(Segment(text=record[name]) for name in task.fields), labels)


def _benchmark(task: _Task) -> Benchmark:
    return Benchmark(
        name=f"pronto_{task.name}",
        fields=task.fields,
        labels=(LabelSpec("label", "class", task.names), *task.others),
        modes=("raw", "sentence"),
        layout=f"a .tsv file, or one translation's folder of files {task.name}_{{split}}.tsv",
        source="Gessler 2023, PrOnto: Language Model Evaluations for 859 Languages",
        licence="as the Bible translation's, see ebible.org; the labels come from OntoNotes (LDC)",
        find=partial(named_parts, patterns=(rf"{task.name}(?:_(?P<split>train|dev|test))?\.tsv",)),
        read_part=partial(_read, task=task),
        ids="{split}-{line}; translations leave out other verses, so languages are not parallel",
        rejects={
            "example": "a line with another number of fields",
            "label": "another label than those stated, or a count that is no number",
            "invalid_character": "a line that is not UTF-8",
        },
        quirks=(task.quirk, "a verse may be several sentences, or a part of one"),
    )


RELEASED: Final = tuple(register(_benchmark(task)) for task in TASKS)

PRONTO: Final = (
    *RELEASED,
    *(register(without_shared_texts(one)) for one in RELEASED if len(one.fields) > 1),
)
