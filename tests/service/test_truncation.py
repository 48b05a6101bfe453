"""Pairs and windows are cut as Hugging Face's own tokenizers cut them, piece by piece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from service.tokenizers import bundled_tokenizers, load_tokenizer
from syntax.batches import AssemblySpec, FlatExamples, SegmentFeatures, assemble_batch

NAMES = (
    "parsebank-wordpiece-en",
    "bert-base-multilingual-cased",
    "xlm-roberta-base_from_multilingual-e5-small",
)
WORDS = ("a", "the", "Haus", "unbelievable", "café", "niño", "犬", "x1")


class Both:
    """One tokenizer, as Parsebank and as transformers load it."""

    def __init__(self, folder: Path) -> None:
        self.ours = load_tokenizer(str(folder))
        self.theirs: Any = AutoTokenizer.from_pretrained(folder)

    def our_rows(self, texts: list[str], spec: AssemblySpec) -> list[tuple[list[int], ...]]:
        """Ids, type ids and offsets of every sequence."""
        example = [self._features(text) for text in texts]
        special = self.ours.special_tokens
        batch = assemble_batch(FlatExamples.from_segments([example]), special, spec)
        names = ("input_ids", "token_type_ids", "offset_mapping")
        return [
            tuple(batch[name][row, :length].tolist() for name in names)
            for row, length in enumerate(batch["attention_mask"].sum(axis=1))
        ]

    def their_rows(self, texts: list[str], **options: Any) -> list[tuple[list[int], ...]]:
        self.theirs.truncation_side = options.pop("side")
        found = self.theirs(
            *texts,
            return_offsets_mapping=True,
            return_overflowing_tokens=True,
            return_token_type_ids=True,
            **options,
        )
        names = ("input_ids", "token_type_ids", "offset_mapping")
        rows = zip(*(found[name] for name in names), strict=True)
        return [(ids, types, [list(span) for span in spans]) for ids, types, spans in rows]

    def _features(self, text: str) -> SegmentFeatures:
        ids, offsets = self.ours.encode(text)
        place = np.arange(len(ids), dtype=np.int32)
        tags = np.ones(len(ids), np.uint8)
        return SegmentFeatures(ids, place - 1, place, tags, tags, 0 * place, offsets)


@pytest.fixture(scope="module", params=NAMES)
def both(request: pytest.FixtureRequest) -> Both:
    if request.param == NAMES[0]:
        return Both(bundled_tokenizers()[NAMES[0]])
    return Both(request.getfixturevalue("data_dir") / "tokenizers" / request.param)


def texts(count: int) -> st.SearchStrategy[list[str]]:
    one = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
    return st.lists(one, min_size=count, max_size=count)


SIDES = st.sampled_from(["right", "left"])


@pytest.mark.slow
@hypothesis_settings(max_examples=100)
@given(pair=texts(2), length=st.integers(8, 60), side=SIDES)
def test_pairs_are_cut_as_by_a_fast_tokenizer(both, pair, length, side) -> None:
    spec = AssemblySpec(length, truncation_side=side, offsets=True, matrices=())
    expected = both.their_rows(pair, side=side, truncation="longest_first", max_length=length)
    assert both.our_rows(pair, spec) == expected[:1]


@hypothesis_settings(max_examples=50)
@given(pair=texts(2), room=st.integers(6, 30), overlap=st.integers(0, 5))
def test_windows_are_those_of_a_fast_tokenizer(both, pair, room, overlap) -> None:
    length = room + len(both.ours.encode(pair[0])[0]) + both.ours.special_tokens.count(2)
    spec = AssemblySpec(
        length, truncation="only_second", stride=room - overlap, offsets=True, matrices=()
    )
    expected = both.their_rows(
        pair, side="right", truncation="only_second", max_length=length, stride=overlap
    )
    # XLM-R has one type, but transformers gives its later windows type 1.
    assert _without_types(both.our_rows(pair, spec)) == _without_types(expected)


def _without_types(rows: list[tuple[list[int], ...]]) -> list[tuple[list[int], ...]]:
    return [(ids, offsets) for ids, _, offsets in rows]


@hypothesis_settings(max_examples=50)
@given(pair=texts(2), length=st.integers(8, 60))
def test_the_slow_tie_is_that_of_bert(both: Both, pair: list[str], length: int) -> None:
    """BERT's own code takes each piece from the second text, unless the first one is longer."""
    first, second = (both.ours.encode(text)[0].tolist() for text in pair)
    while len(first) + len(second) + both.ours.special_tokens.count(2) > length:
        (first if len(first) > len(second) else second).pop()
    spec = AssemblySpec(length, truncation_tie="slow", offsets=True, matrices=())
    special = both.ours.special_tokens
    ((ids, *_),) = both.our_rows(pair, spec)
    assert ids == [*special.prefix, *first, *special.separator, *second, *special.suffix]
