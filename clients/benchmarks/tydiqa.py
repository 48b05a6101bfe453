"""TyDi QA GoldP: questions asked in nine languages by people who did not know the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
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

LANGS: Final = {
    "arabic": "ar",
    "bengali": "bn",
    "english": "en",
    "finnish": "fi",
    "indonesian": "id",
    "korean": "ko",
    "russian": "ru",
    "swahili": "sw",
    "telugu": "te",
}
"""Codes by English names, with which the ids begin."""

_ONE_LANGUAGE = re.compile(
    r"tydiqa\.goldp\.(?P<code>[^.]+)\.(?P<split>[^.]+)\.json"
    r"|tydiqa-goldp-(?P<of>[a-z]+)-(?P<language>[a-z]+)\.json"
)
_ALL_LANGUAGES = re.compile(r"tydiqa-goldp-v1\.[0-9]-(?P<split>[^-]+)\.json")


def _find(folder: Path) -> Sequence[Part]:
    """A language's own file takes precedence over the file of all languages."""
    files = list(folder.iterdir())
    matches = ((_ONE_LANGUAGE.fullmatch(plain_path(path).name), path) for path in files)
    own = [_own_part(match, path) for match, path in matches if match]
    known = {(part.split, part.lang) for part in own}
    whole = ((_ALL_LANGUAGES.fullmatch(plain_path(path).name), path) for path in files)
    shared = [
        Part(match["split"], lang, (path,))
        for match, path in whole
        if match
        for lang in LANGS.values()
    ]
    return own + [part for part in shared if (part.split, part.lang) not in known]


def _own_part(match: re.Match[str], path: Path) -> Part:
    lang = match["code"] or LANGS.get(match["language"], match["language"])
    return Part(match["split"] or match["of"], lang, (path,))


def _belongs(part: Part, name: str) -> bool:
    return LANGS.get(name.partition("-")[0], part.lang) == part.lang


TYDIQA: Final = register(
    Benchmark(
        name="tydiqa",
        fields=FIELDS,
        labels=(ANSWERS,),
        modes=MODES,
        layout="a .json file, or a folder of files tydiqa.goldp.{lang}.{split}.json, "
        "tydiqa-goldp-v1.1-{split}.json or tydiqa-goldp-{split}-{language}.json",
        source="Clark et al. 2020, TyDi QA: the gold passage task",
        licence="Apache-2.0",
        find=_find,
        read_part=partial(read_answers, belongs=_belongs),
        ids=f"{IDS} (one copy of the English training file numbers its questions anew for each "
        "article); languages are not translations of each other",
        rejects=REJECTS,
        langs=tuple(LANGS.values()),
        quirks=(
            "a file that holds all languages is read for one: by the language in the ids",
            *QUIRKS,
        ),
    )
)
