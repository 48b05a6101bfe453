"""The words of a batch, found one by one: the slow twin of `syntax.batches.words.word_layout`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def slow_layout(arrays: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The fields of a `WordLayout`, by name."""
    rows = [_words(arrays, row) for row in range(len(arrays["word_ids"]))]
    shape = (len(rows), max(map(len, rows), default=0))
    defaults = {"sources": 0, "sentences": -1, "segments": -1, "words": -1, "first": 0}
    found: dict[str, Any] = {name: np.full(shape, none) for name, none in defaults.items()}
    found["whole"] = np.zeros(shape, bool)
    found["pieces"] = np.full(arrays["word_ids"].shape, -1)
    for row, words in enumerate(rows):
        for column, word in enumerate(words):
            for name in (*defaults, "whole"):
                found[name][row, column] = word[name]
            found["pieces"][row, word["positions"]] = column
    return found


def _words(arrays: Mapping[str, Any], row: int) -> list[dict[str, Any]]:
    """The words that a sequence shows, in order."""
    pieces: dict[tuple[int, int], list[int]] = {}
    sentence_of: dict[tuple[int, int], int] = {}
    for at, word in enumerate(arrays["word_ids"][row].tolist()):
        if word >= 0:
            key = (int(arrays["segment_ids"][row, at]), word)
            pieces.setdefault(key, []).append(at)
            sentence_of[key] = int(arrays["sentence_ids"][row, at])
    shown = sorted({(segment, number) for (segment, _), number in sentence_of.items()})
    words: list[dict[str, Any]] = []
    for place, (segment, number) in enumerate(shown):
        there = sorted(
            word for (own, word), of in sentence_of.items() if (own, of) == (segment, number)
        )
        every, whole = there, True
        if "parses" in arrays:
            parse, kept = arrays["parses"][row][segment], set(there)
            low, high = arrays["shown_characters"][row, segment].tolist()
            first, end = parse.word_ranges()[number]
            for word in range(first, end):
                if parse.word_start[word] >= low and parse.word_end[word] <= high:
                    kept.add(word)
            every, whole = sorted(kept), len(kept) == end - first
        start = len(words)
        for column, word in enumerate(every):
            before = [at for at in range(column + 1) if (segment, every[at]) in pieces]
            behind = [at for at in range(len(every)) if (segment, every[at]) in pieces]
            words.append(
                {
                    "sources": start + (before[-1] if before else behind[0]),
                    "sentences": place,
                    "segments": segment,
                    "words": word,
                    "first": start,
                    "whole": whole,
                    "positions": pieces.get((segment, word), []),
                }
            )
    return words
