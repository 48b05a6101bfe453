"""SNLI and MultiNLI: entailment between sentences, a JSON record on each line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from clients.benchmarks.base import (
    BENCHMARKS,
    Benchmark,
    Item,
    Part,
    attempt,
    named_parts,
    register,
)
from clients.benchmarks.documents import parsed_object, text_of
from clients.benchmarks.lines import Line, any_line, numbered_lines
from clients.benchmarks.xnli import LABEL
from syntax.errors import LabelError, NoLabelError
from syntax.examples import Example, Mode, Segment

NO_LABEL: Final = (None, "-", "")

HIDDEN: Final = "hidden"


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    blind = not any_line(path, lambda raw: b'"gold_label"' in raw)
    for line in numbered_lines(path):
        example_id = f"{part.split}-{line.number}"
        yield attempt(example_id, _example, line, blind)


def _example(example_id: str, line: Line, blind: bool) -> Example:
    where = line.where
    record = parsed_object(line.text(), where)
    texts = [text_of(record, key, where) for key in ("sentence1", "sentence2")]
    label = None if blind else _label(record.get("gold_label"), where)
    return Example(example_id, tuple(Segment(text=text) for text in texts), {"label": label})


def _label(value: Any, where: str) -> str | None:
    if value == HIDDEN:
        return None
    if value in NO_LABEL:
        raise NoLabelError(f"{where} has no gold label ({value!r} stands for none)")
    if value not in LABEL.names:
        known = ", ".join(LABEL.names)
        raise LabelError(f"{where} has the gold label {value!r}; expected one of {known}")
    return str(value)


def _benchmark(name: str, pattern: str, source: str, licence: str) -> Benchmark:
    return Benchmark(
        name=name,
        fields=("premise", "hypothesis"),
        labels=(LABEL,),
        modes=("raw", "sentence"),
        layout=f"a .jsonl file, or a folder of files such as {pattern}",
        source=source,
        licence=licence,
        find=partial(named_parts, patterns=(_PATTERNS[name],), lang="en"),
        read_part=_read,
        ids="{split}-{line}",
        rejects={
            "no_label": "a pair on whose label the annotators did not agree (gold label -)",
            "label": "another label than entailment, neutral and contradiction",
            "example": "a line that is no JSON object, or has no sentence1 or sentence2",
            "invalid_character": "a line that is not UTF-8, or half of a surrogate pair",
        },
        langs=("en",),
        quirks=(
            "the published files' own parses are not used",
            "pairs whose gold label is `hidden`, and those of a file without gold labels, are kept "
            "without (blind)",
        ),
    )


_PATTERNS: Final = {
    "snli": r"(?:.+_)?snli(?:_1\.0)?(?:_(?P<split>train|dev|test))?\.jsonl",
    "mnli": r"multinli_[0-9.]+_(?P<split>train|(?:dev|test)_(?:mis)?matched)(?:_unlabeled)?\.jsonl",
}

SNLI: Final = register(
    _benchmark(
        "snli",
        "snli_1.0_train.jsonl",
        source="Bowman et al. 2015, A large annotated corpus for natural language inference",
        licence="CC BY-SA 4.0",
    )
)
MNLI: Final = register(
    _benchmark(
        "mnli",
        "multinli_1.0_dev_matched.jsonl",
        source="Williams et al. 2018, A Broad-Coverage Challenge Corpus (MultiNLI)",
        licence="OANC and others by genre, see the paper",
    )
)
BENCHMARKS.alias("multinli", "mnli")
