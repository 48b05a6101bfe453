"""CoLA and SST-2: one sentence and a class, in the TAB-separated files of GLUE and the authors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Part, attempt, register
from clients.benchmarks.layout import named_parts
from clients.benchmarks.lines import decoded, numbered_lines, tsv_fields
from syntax.errors import LabelError, NoLabelError
from syntax.examples import Example, LabelSpec, Mode, Segment

REJECTS: Final = {
    "no_label": "a sentence of the blind test set",
    "label": "another label than those stated",
    "example": "a line with another number of fields",
    "invalid_character": "a line that is not UTF-8",
}

_BLIND = ("index", "sentence")


@dataclass(frozen=True, slots=True)
class _Form:
    columns: tuple[str, ...]
    label: LabelSpec


def _read(part: Part, mode: Mode, *, form: _Form) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    for number, raw in numbered_lines(path):
        if number > 1 or raw not in _headers(form):
            example_id = f"{part.split}-{number}"
            yield attempt(example_id, partial(_example, example_id, raw, path, number, form))


def _headers(form: _Form) -> Sequence[bytes]:
    return ["\t".join(columns).encode() for columns in (form.columns, _BLIND)]


def _example(example_id: str, raw: bytes, path: Path, number: int, form: _Form) -> Example:
    where = f"{path.name}, line {number}"
    line = decoded(raw, path, number)
    if _is_blind(line, form.label):
        raise NoLabelError(f"{where} has a number and a sentence, but no label")
    record = dict(zip(form.columns, tsv_fields(line, form.columns, where), strict=True))
    label = record["label"]
    if label not in form.label.names:
        known = ", ".join(form.label.names)
        raise LabelError(f"{where} has the label {label!r}; expected one of {known}")
    return Example(example_id, (Segment(text=record["sentence"]),), {form.label.name: label})


def _is_blind(line: str, label: LabelSpec) -> bool:
    fields = line.split("\t")
    return len(fields) == len(_BLIND) and fields[0].isdecimal() and fields[1] not in label.names


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
            "GLUE's test set has no labels: each of its lines is rejected (no_label)",
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
            "GLUE's test set has no labels: each of its lines is rejected (no_label)",
        ),
    )
)
