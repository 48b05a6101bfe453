"""CoNLL-2002 and CoNLL-2003: named entities in news, in Spanish, Dutch, English and German."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Part, named_parts, register
from clients.benchmarks.tags import MODES, REJECTS, entities, read_columns

LABEL: Final = entities("LOC", "MISC", "ORG", "PER")
ENCODINGS: Final = ("utf-8", "latin-1")

_CODES = {"esp": "es", "ned": "nl", "eng": "en", "deu": "de"}
_SPLIT = "(?P<split>train|dev|valid|test|testa|testb)"
_LANG = f"(?P<lang>{'|'.join((*_CODES, *_CODES.values()))})"


def _find(folder: Path) -> list[Part]:
    parts = named_parts(folder, patterns=(rf"{_LANG}\.{_SPLIT}", rf"{_SPLIT}\.txt"), lang="en")
    return [replace(part, lang=_CODES.get(part.lang, part.lang)) for part in parts]


CONLL: Final = register(
    Benchmark(
        name="conll",
        fields=("text",),
        labels=(LABEL,),
        modes=MODES,
        layout=(
            "a file of tagged tokens, or a folder of files {lang}.{split} "
            "(esp.testa, ned.train, eng.testb, de.dev) or {split}.txt, taken for English"
        ),
        source=(
            "Tjong Kim Sang 2002 and Tjong Kim Sang and De Meulder 2003, shared tasks of CoNLL; "
            "news of EFE, De Morgen, Reuters, Frankfurter Rundschau"
        ),
        licence="research only; the Reuters and German texts need an agreement of their own",
        find=_find,
        read_part=partial(read_columns, label=LABEL, encodings=ENCODINGS),
        ids="{split}-{number of the sentence in the file}; languages are not parallel",
        rejects=REJECTS,
        langs=("de", "en", "es", "nl"),
        quirks=(
            "testa is dev, testb is test",
            "the files of 2002 and the German ones are Latin-1 as first published; "
            "copies in UTF-8 are told by their bytes",
            "-DOCSTART- lines mark documents and are no tokens",
            "IOB1 of 2003 becomes BIO; the tag is the last column, or the last but one",
        ),
        encodings=ENCODINGS,
    )
)
