"""SQuAD 1.1 and 2.0: spans of a Wikipedia passage answer a question; in 2.0 perhaps none does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from clients.benchmarks.answers import (
    ANSWERS,
    FIELDS,
    IDS,
    MODES,
    QUIRKS,
    REJECTS,
    Answers,
    Labels,
    read_answers,
)
from clients.benchmarks.base import Benchmark, Item, Part, named_parts, register
from syntax.errors import LabelError, NoLabelError
from syntax.examples import LabelSpec, Mode

ANSWERABLE: Final = LabelSpec("answerable", "class", ("no", "yes"))
"""``no``: the passage does not answer the question (SQuAD 2.0)."""


def _read(part: Part, mode: Mode) -> Iterator[Item]:
    return read_answers(part, mode, extra=_answerable)


def _answerable(question: dict[str, Any], answers: Answers | None, where: str) -> Labels:
    """Decide by an answer with text, as the official evaluation; the file may say it too."""
    if answers is None:
        return {"answerable": None}
    if len(answers) < len(question.get("answers", ())):
        raise NoLabelError(
            f"{where} has an answer without text, which does not say whether there is one, in a "
            "file with labels; repair it"
        )
    if not answers and "is_impossible" not in question:
        raise NoLabelError(
            f"{where} has neither answers nor 'is_impossible', which does not say whether there is "
            "an answer, in a file with labels; repair it"
        )
    if question.get("is_impossible", not answers) is not (not answers):
        raise LabelError(
            f"{where}: 'is_impossible' is {question['is_impossible']!r}, but there are "
            f"{len(answers)} answers; correct one of them"
        )
    return {"answerable": "yes" if answers else "no"}


SQUAD: Final = register(
    Benchmark(
        name="squad",
        fields=FIELDS,
        labels=(ANSWERS, ANSWERABLE),
        modes=MODES,
        layout="a .json file, or a folder of files {split}-v{1.1|2.0}.json of one version",
        source="Rajpurkar et al. 2016 and 2018, SQuAD 1.1 and 2.0",
        licence="CC BY-SA 4.0",
        find=partial(named_parts, patterns=(r"(?P<split>[^-]+)-v[12]\.[0-9]\.json",), lang="en"),
        read_part=_read,
        ids=IDS,
        rejects=REJECTS
        | {
            "label": f"{REJECTS['label']}; `is_impossible` against its answers",
            "no_label": "in a file with labels: an answer without text, or none and no "
            "`is_impossible`",
        },
        quirks=(
            *QUIRKS[:2],
            "plausible answers of SQuAD 2.0 are no answers: they are not read",
            "any file of this format is read, in the language that you state",
        ),
    )
)
