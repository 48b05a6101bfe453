"""Writes ``train-en.tsv`` and ``dev-en.tsv``: ``python -m clients.benchmarks.sample.make``."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from clients.benchmarks.sample import material
from clients.benchmarks.sample.material import PATTERNS

SEED: Final = 20
SIZES: Final = {"train": 400, "dev": 100}
LABELS: Final = ("entailment", "neutral", "contradiction")
EMPTY_PREMISES: Final = {"train": (137, 286), "dev": (58,)}
"""Lines whose premise is missing, as in real benchmarks."""


def pairs(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Premise, hypothesis and label, without end; no premise comes twice, labels take turns."""
    seen: set[str] = set()
    labels = cycle(LABELS)
    while True:
        for pattern in rng.sample(PATTERNS, len(PATTERNS)):
            words = _words(rng)
            premise = pattern.premise.format_map(words)
            if premise not in seen:
                seen.add(premise)
                label = next(labels)
                of_label: tuple[str, ...] = getattr(pattern, label)
                yield premise, rng.choice(of_label).format_map(words), label


def files() -> dict[str, str]:
    source = pairs(random.Random(SEED))
    content = {}
    for split, size in SIZES.items():
        rows = []
        for number, (premise, hypothesis, label) in enumerate(islice(source, size), 1):
            shown = "" if number in EMPTY_PREMISES[split] else premise
            rows.append(f"{shown}\t{hypothesis}\t{label}\n")
        content[split] = "".join(rows)
    return content


def _words(rng: random.Random) -> dict[str, str]:
    words = dict(zip("abc", rng.sample(material.PEOPLE, 3), strict=True))
    words |= dict(zip("pq", rng.sample(material.PLACES, 2), strict=True))
    words |= dict(zip(("do", "past", "done"), rng.choice(material.VERBS), strict=True))
    words |= dict(zip(("give", "gave", "given"), rng.choice(material.GIVING), strict=True))
    words |= dict(zip(("act", "did"), rng.choice(material.DEEDS), strict=True))
    words |= dict(zip(("more", "less"), rng.choice(material.COMPARISONS), strict=True))
    words |= {"n": rng.choice(material.NAMES), "thing": rng.choice(material.THINGS)}
    words |= {"when": rng.choice(material.TIMES)}
    return words | {slot.capitalize(): _capital(words[slot]) for slot in (*"abcnpq", "thing")}


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


if __name__ == "__main__":
    for split, content in files().items():
        Path(__file__).with_name(f"{split}-en.tsv").write_text(content, "utf-8", newline="\n")
