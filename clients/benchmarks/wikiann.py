"""WikiAnn, also called PAN-X: names of people, places and organisations in Wikipedia."""

from __future__ import annotations

from functools import partial
from typing import Final

from clients.benchmarks.base import BENCHMARKS, Benchmark, named_parts, register
from clients.benchmarks.tags import MODES, REJECTS, entities, read_columns

LABEL: Final = entities("LOC", "ORG", "PER")

_SPLIT = "(?P<split>train|dev|test|extra)"
_BIO = rf"wikiann-(?P<lang>[^_]+?)(_{_SPLIT})?\.bio"

WIKIANN: Final = register(
    Benchmark(
        name="wikiann",
        fields=("text",),
        labels=(LABEL,),
        modes=MODES,
        layout=(
            "a file of tagged tokens, or a folder of files {split}-{lang}.tsv, {lang}/{split} or "
            "wikiann-{lang}_{split}.bio (also one folder down; without split: whole)"
        ),
        source="Pan et al. 2017, Cross-lingual Name Tagging; splits of Rahimi et al. 2019",
        licence="ODC-BY (text of Wikipedia: CC BY-SA)",
        find=partial(
            named_parts,
            patterns=(rf"{_SPLIT}-(?P<lang>.+)\.tsv", f"(?P<lang>.+)/{_SPLIT}", _BIO, f".+/{_BIO}"),
        ),
        read_part=partial(read_columns, label=LABEL),
        ids="{split}-{number of the sentence in the file}; languages are not parallel",
        rejects=REJECTS,
        quirks=(
            "sentences are fragments of articles; wiki quotation marks '' are tokens",
            "tokens that are zero-width or right-to-left marks are kept",
            "an I- that follows no entity begins one (Chinese has some)",
            "BILOU tags of the low-resource files become BIO",
            "lang:token, as the authors' files have it, becomes token",
        ),
    )
)
BENCHMARKS.alias("panx", "wikiann")
