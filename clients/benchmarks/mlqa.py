"""MLQA: questions in seven languages on passages in seven languages, joined by their ids.

``dev de`` is the file ``dev-context-de-question-de.json``. A file of two languages is a part
``dev_mixed context-en-question-de``: no parser is right for both its fields. Its content is in
the store without it, by `featurestore.dataset.crossed` of two languages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from clients.benchmarks.answers import (
    ANSWERS,
    FIELDS,
    IDS,
    MODES,
    QUIRKS,
    REJECTS,
    read_answers,
)
from clients.benchmarks.base import Benchmark, Part, register
from clients.files import plain_path

_FILE_NAME = re.compile(r"(?P<split>[^-]+)-context-(?P<context>.+)-question-(?P<question>.+)\.json")


def _find(folder: Path) -> Sequence[Part]:
    named = ((_FILE_NAME.fullmatch(plain_path(path).name), path) for path in folder.iterdir())
    return [_part(match, path) for match, path in named if match]


def _part(match: re.Match[str], path: Path) -> Part:
    split, context, question = match.group("split", "context", "question")
    if context == question:
        return Part(split, context, (path,))
    return Part(f"{split}_mixed", f"context-{context}-question-{question}", (path,))


MLQA: Final = register(
    Benchmark(
        name="mlqa",
        fields=FIELDS,
        labels=(ANSWERS,),
        modes=MODES,
        layout="a .json file, or a folder of files {split}-context-{lang}-question-{lang}.json",
        source="Lewis et al. 2020, MLQA: Evaluating Cross-lingual Extractive Question Answering",
        licence="CC BY-SA 3.0",
        find=_find,
        read_part=read_answers,
        ids=f"{IDS}; the same in every language and pair of languages",
        rejects=REJECTS,
        langs=("ar", "de", "en", "es", "hi", "vi", "zh"),
        quirks=(
            "a file that mixes two languages is the part `{split}_mixed "
            "context-{lang}-question-{lang}`: fit to be checked, but no parser is right for both "
            "its fields",
            "for such pairs, store each language alone, and cross the fields of two datasets: the "
            "ids, questions and passages are those of the mixed file",
            *QUIRKS[:2],
        ),
    )
)
