"""CoLA and SST-2: one sentence and a class, in the TAB-separated files of GLUE and the authors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Part, attempt, named_parts, register
from clients.benchmarks.lines import Line, any_line, numbered_lines
from syntax.errors import ExampleError, LabelError, NoLabelError
from syntax.examples import Example, LabelSpec, Mode, Segment

REJECTS: Final = {
    "no_label": "a number and a sentence among lines that have labels",
    "label": "another label than those stated",
    "example": "a line with another number of fields; of a blind file, one without a number",
    "invalid_character": "a line that is not UTF-8",
}

_BLIND = ("index", "sentence")


@dataclass(frozen=True, slots=True)
class _Form:
    columns: tuple[str, ...]
    label: LabelSpec


def _read(part: Part, mode: Mode, *, form: _Form) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    read = _example if any_line(path, partial(_has_label, form=form)) else _blind_example
    headers = ["\t".join(columns).encode() for columns in (form.columns, _BLIND)]
    for line in numbered_lines(path):
        if line.number > 1 or line.raw not in headers:
            example_id = f"{part.split}-{line.number}"
            yield attempt(example_id, read, line, form)


def _has_label(raw: bytes, *, form: _Form) -> bool:
    fields = raw.decode("utf-8", "replace").split("\t")
    is_row = len(fields) == len(form.columns)
    return is_row and fields[form.columns.index("label")] in form.label.names


def _blind_example(example_id: str, line: Line, form: _Form) -> Example:
    index, sentence = line.fields(_BLIND)
    if not index.isdecimal():
        raise ExampleError(
            f"{line.where} begins with {index!r}; expected the number of the sentence"
        )
    return Example(example_id, (Segment(text=sentence),), {form.label.name: None})


def _example(example_id: str, line: Line, form: _Form) -> Example:
    fields = line.text().split("\t")
    if len(fields) == len(_BLIND) and fields[0].isdecimal() and fields[1] not in form.label.names:
        raise NoLabelError(f"{line.where} has a number and a sentence, but no label")
    record = dict(zip(form.columns, line.fields(form.columns), strict=True))
    label = record["label"]
    if label not in form.label.names:
        known = ", ".join(form.label.names)
        raise LabelError(f"{line.where} has the label {label!r}; expected one of {known}")
    return Example(example_id, (Segment(text=record["sentence"]),), {form.label.name: label})


_SPLIT: Final = "(?P<split>train|dev|test)"
COLA_FORM: Final = _Form(
    ("source", "label", "mark", "sentence"), LabelSpec("label", "class", ("0", "1"))
)
SST2_FORM: Final = _Form(("sentence", "label"), LabelSpec("label", "class", ("0", "1")))


def _find_cola(folder: Path) -> list[Part]:
    patterns = (rf"(?:cola_)?{_SPLIT}\.tsv", r"(?P<split>(?:in|out_of)_domain_(?:train|dev))\.tsv")
    parts = named_parts(folder, patterns=patterns, lang="en")
    return [Part(_OWN_SPLITS.get(part.split, part.split), part.lang, part.files) for part in parts]


_OWN_SPLITS = {
    "in_domain_train": "train",
    "in_domain_dev": "dev",
    "out_of_domain_dev": "dev_out_of_domain",
}

COLA: Final = register(
    Benchmark(
        name="cola",
        fields=("sentence",),
        labels=(COLA_FORM.label,),
        modes=("raw", "sentence"),
        layout=(
            "a .tsv file, or a folder of files {split}.tsv, cola_{split}.tsv or "
            "in_domain_{split}.tsv and out_of_domain_dev.tsv"
        ),
        source="Warstadt et al. 2019, Neural Network Acceptability Judgments (CoLA)",
        licence="the sentences come from published books and articles; research use",
        find=_find_cola,
        read_part=partial(_read, form=COLA_FORM),
        ids="{split}-{line}",
        rejects=REJECTS,
        langs=("en",),
        quirks=(
            "four columns without a header: source, label, the author's mark, sentence",
            "label 1 is acceptable, 0 is not",
            "a file none of whose lines has a label is blind, as GLUE's test: a number and a "
            "sentence on each line, kept without label",
            "quotation marks are text",
        ),
    )
)
SST2: Final = register(
    Benchmark(
        name="sst2",
        fields=("sentence",),
        labels=(SST2_FORM.label,),
        modes=("raw", "sentence"),
        layout="a .tsv file, or a folder of files {split}.tsv, as GLUE has them",
        source="Socher et al. 2013, Recursive Deep Models (Stanford Sentiment Treebank); GLUE",
        licence="free for research, see the authors' page",
        find=partial(named_parts, patterns=(rf"(?:sst2_)?{_SPLIT}\.tsv",), lang="en"),
        read_part=partial(_read, form=SST2_FORM),
        ids="{split}-{line}; the header is line 1",
        rejects=REJECTS,
        langs=("en",),
        quirks=(
            "label 1 is positive, 0 is negative",
            "training lines are phrases as well as sentences, tokenized and in lower case",
            "a file none of whose lines has a label is blind, as GLUE's test: a number and a "
            "sentence on each line, kept without label",
        ),
    )
)
