"""Examples of real sentences, laid end to end until they have the wanted length."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from syntax import Parse, read_conllu
from syntax.alignment import segment_features
from syntax.batches import FlatExamples, SegmentFeatures, SpecialTokens
from syntax.trees.conllu import parse_from_sentences

TINY = Path(__file__).parents[2] / "tests" / "fixtures" / "treebank-tiny"
EWT = "UD_English-EWT"
LONGEST = 512
"""Wordpieces of a sequence, special tokens included, at most."""

SPECIAL = SpecialTokens(prefix=(1,), separator=(2,), suffix=(2,), pad_id=0, vocab_size=30_010)


@dataclass(frozen=True)
class Sentences:
    """Sentences as parses and as features, and their words, in random order."""

    source: str
    parses: list[Parse]
    features: list[SegmentFeatures]
    words: list[int]


def read_sentences() -> Sentences:
    """Test and dev part of UD_English-EWT where PARSEBANK_DATA is set, else the test treebank."""
    parses = treebank("test", "dev")
    chosen = [parses[at] for at in np.random.default_rng(0).permutation(len(parses))]
    source = f"{EWT}, test and dev" if os.environ.get("PARSEBANK_DATA") else TINY.name
    words = [parse.word_count for parse in chosen]
    return Sentences(source, chosen, [features_of(parse) for parse in chosen], words)


def treebank(*parts: str) -> list[Parse]:
    """Sentences of parts of UD_English-EWT, or of the test treebank without PARSEBANK_DATA."""
    folder = os.environ.get("PARSEBANK_DATA")
    paths = [Path(folder or "") / "treebanks" / EWT / f"en_ewt-ud-{part}.conllu" for part in parts]
    paths = paths if folder else sorted(TINY.glob("*.conllu"))
    return [parse_from_sentences([s]) for path in paths for s in read_conllu(path)]


def features_of(parse: Parse) -> SegmentFeatures:
    """Pieces of up to four characters."""
    spans = [
        (at, min(at + 4, end))
        for start, end in zip(parse.token_start, parse.token_end, strict=True)
        for at in range(start, end, 4)
    ]
    ids = [10 + zlib.crc32(parse.text[start:end].encode()) % 30_000 for start, end in spans]
    return segment_features(parse, np.array(ids), np.array(spans))


def make_examples(sentences: Sentences, target: int, count: int) -> list[SegmentFeatures]:
    """Texts of several sentences; lengths spread by a quarter around ``target`` pieces."""
    rng = np.random.default_rng(target)
    wanted = np.clip(rng.normal(target, target / 4, count), 8, LONGEST - 6)
    supply = cycle(range(len(sentences.features)))
    return [_join(sentences, list(_fill(sentences, supply, int(size)))) for size in wanted]


def _fill(sentences: Sentences, supply: Iterator[int], wanted: int) -> Iterator[int]:
    """Sentences that fit, of the next fifty; the first of them if none does."""
    size = 0
    nearby = list(islice(supply, 50))
    for at in nearby:
        length = len(sentences.features[at])
        if size + length <= wanted + 4:
            size += length
            yield at
        if size >= wanted - 4:
            return
    if not size:
        yield min(nearby, key=lambda at: len(sentences.features[at]))


def _join(sentences: Sentences, chosen: list[int]) -> SegmentFeatures:
    """Several sentences as one text."""
    parts = [sentences.features[at] for at in chosen]
    pieces = np.cumsum([0, *(len(part) for part in parts)])
    words = np.cumsum([0, *(sentences.words[at] for at in chosen)])
    return SegmentFeatures(
        input_ids=np.concatenate([part.input_ids for part in parts]),
        head=_shifted([part.head for part in parts], pieces),
        word_ids=_shifted([part.word_ids for part in parts], words),
        upos=np.concatenate([part.upos for part in parts]),
        deprel=np.concatenate([part.deprel for part in parts]),
        sentence_ids=_shifted([part.sentence_ids for part in parts], np.arange(len(parts))),
        offsets=np.concatenate([part.offsets for part in parts]),
    )


def _shifted(columns: list[np.ndarray], shifts: np.ndarray) -> np.ndarray:
    """Columns end to end, each moved on; negative values stay."""
    moved = [np.where(c < 0, c, c + s) for c, s in zip(columns, shifts, strict=False)]
    return np.concatenate(moved).astype(np.int32)


def flat(examples: list[SegmentFeatures]) -> FlatExamples:
    """Examples of one segment each, end to end."""
    return FlatExamples.from_segments([[example] for example in examples])
