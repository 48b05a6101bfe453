"""RACE: questions of English examinations about a passage, with four options each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from clients.benchmarks.base import Benchmark, Item, Part, attempt, files_like, register, rejection
from clients.benchmarks.documents import document_of, text_of
from clients.files import plain_path
from syntax.errors import ExampleError, InputError, LabelError
from syntax.examples import Example, LabelSpec, Mode, Segment

LEVELS: Final = ("middle", "high")
LABEL: Final = LabelSpec("label", "class", ("A", "B", "C", "D"))
LEVEL: Final = LabelSpec("level", "class", LEVELS)
"""School of the examination: accuracy is given for each, and for both."""

OPTIONS: Final = ("option_a", "option_b", "option_c", "option_d")
FIELDS: Final = ("article", "question", *OPTIONS)


def _find(folder: Path) -> Sequence[Part]:
    parts = []
    for split in (path for path in folder.iterdir() if path.is_dir()):
        files = [file for level in LEVELS for file in files_like(split, f"{level}/*.txt")]
        if files:
            parts.append(Part(split.name, "en", tuple(files)))
    return parts


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    for path in part.files:
        level, stem = path.parent.name, plain_path(path).stem
        try:
            passage = document_of(path)
            questions = _questions(passage, path)
        except InputError as error:
            yield rejection(f"{level}{stem}", error)
            continue
        for number, question in enumerate(questions, 1):
            example_id = f"{level}{stem}-{number}"
            yield attempt(example_id, _example, passage, question, level)


def _questions(passage: Any, path: Path) -> list[tuple[Any, ...]]:
    keys = ("questions", "options", "answers")
    lists = [passage.get(key) for key in keys] if isinstance(passage, dict) else []
    columns = [values for values in lists if isinstance(values, list)]
    if len(columns) < len(keys):
        raise ExampleError(f"{path.name} has not all of the lists questions, options and answers")
    return list(zip_longest(*columns))


def _example(
    example_id: str, passage: dict[str, Any], question: tuple[Any, ...], level: str
) -> Example:
    asked, options, answer = question
    if not isinstance(options, list) or len(options) != len(OPTIONS):
        raise ExampleError(f"{example_id} has the options {options!r}; expected a list of four")
    texts = dict(zip(FIELDS, (passage.get("article"), asked, *options), strict=True))
    segments = tuple(Segment(text=text_of(texts, field, example_id)) for field in FIELDS)
    labels = {"label": _name(LABEL, answer, example_id), "level": _name(LEVEL, level, example_id)}
    return Example(example_id, segments, labels)


def _name(spec: LabelSpec, value: Any, example_id: str) -> str:
    for name in spec.names:
        if value == name:
            return name
    known = ", ".join(spec.names)
    raise LabelError(f"{example_id} has the {spec.name} {value!r}; expected one of {known}")


RACE: Final = register(
    Benchmark(
        name="race",
        fields=FIELDS,
        labels=(LABEL, LEVEL),
        modes=("raw", "sentence"),
        layout="a folder with {split}/middle/*.txt and {split}/high/*.txt, a JSON passage each",
        source="Lai et al. 2017, RACE: Large-scale ReAding Comprehension Dataset From Examinations",
        licence="non-commercial research only",
        find=_find,
        read_part=_read,
        ids="`{level}{passage}-{question}`, such as `high10024-1`: the folder, the file, and "
        "the question counted from 1",
        rejects={
            "example": "a file that is no passage; a question without text or four options",
            "label": "an answer that is none of A-D; a file in no folder `middle` or `high`",
            "invalid_character": "bytes that are not UTF-8",
        },
        langs=("en",),
        quirks=(
            "the passage is repeated for each of its questions; it is parsed once",
            "where a question has a gap, it is the file's `_`",
            "a single file is read where it lies in a folder `middle` or `high`",
        ),
    )
)
