"""Labels of words on pieces, with the tags that are stored as real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.batches import (
    IGNORE,
    AssemblySpec,
    FlatExamples,
    SegmentFeatures,
    Template,
    assemble_batch,
    label_pieces,
)
from syntax.errors import InputError, SpecError
from tests.syntax.test_batches_sequences import BERT

OPTIONS: list[dict[str, Any]] = [
    {},
    {"max_length": 12, "truncation_side": "left"},
    {"max_length": 14, "truncation": "only_second", "stride": 2, "segment_limits": (4, None)},
    {"truncation": "only_second", "level": "sentence"},
    {"template": Template.of("ab", "b a", "a+b", "b")},
]


def tags_of_words(segment: SegmentFeatures) -> list[int]:
    """UPOS of each word, from its pieces."""
    words = segment.word_ids.tolist()
    return [int(segment.upos[words.index(word)]) for word in range(max(words, default=-1) + 1)]


@pytest.mark.parametrize("options", OPTIONS)
@given(data=st.data())
@settings(max_examples=30)
def test_all_pieces_of_a_word_have_the_label_that_is_stored(options, data, texts) -> None:
    pairs = data.draw(st.lists(st.tuples(texts, texts), min_size=1, max_size=3))
    stored = [[text.features() for text in pair] for pair in pairs]
    spec = AssemblySpec(**{"first_pieces": True, "offsets": True, "matrices": (), **options})
    batch = assemble_batch(FlatExamples.from_segments(stored), BERT, spec)
    choices = spec.template.sequences if spec.template else (((0,), (1,)),)
    # The field that the segment at each place of each sequence is.
    fields = [[field for part in choice for field in part] for choice in choices]
    own = np.arange(len(stored))
    for segment in range(2):
        for choice, of in enumerate(fields):
            field = of[segment] if segment < len(of) else 0
            labels = [tags_of_words(example[field]) for example in stored]
            ours = batch.get("choice_index", 0 * own) == choice
            part = {name: values[ours] for name, values in batch.items()}
            everywhere = label_pieces(part, labels, segment, pieces="all")
            here = (part["segment_ids"] == segment) & (part["word_ids"] >= 0)
            assert everywhere[here].tolist() == part["upos"][here].tolist()
            assert (everywhere[~here] == IGNORE).all()
            first = label_pieces(part, labels, segment, ignore=-1)
            assert (first >= 0).tolist() == (here & part["first_pieces"]).tolist()
            assert first[first >= 0].tolist() == everywhere[first >= 0].tolist()


def word_of(pieces: int) -> SegmentFeatures:
    """One word of some pieces."""
    zeros = np.zeros(pieces, np.int32)
    head = np.array([-1] + [0] * (pieces - 1), np.int32)
    tag = np.ones(pieces, np.uint8)
    return SegmentFeatures(zeros, head, zeros, tag, tag, zeros, np.zeros((pieces, 2), np.int32))


def test_labels_that_do_not_fit_are_refused() -> None:
    flat = FlatExamples.from_segments([[word_of(2)], [word_of(1)]])
    batch = assemble_batch(flat, BERT, AssemblySpec(first_pieces=True))
    with pytest.raises(InputError, match="labels of 1 examples came for a batch of 2"):
        label_pieces(batch, [[1]])
    with pytest.raises(InputError, match="example 1 of the batch has the word 0, and labels for 0"):
        label_pieces(batch, [[1], []])
    with pytest.raises(InputError, match="example 'ex-9' has the word 0, and labels for 0"):
        label_pieces({**batch, "example_id": ["ex-3", "ex-9"]}, [[1], []])
    with pytest.raises(SpecError, match="one of first, all"):
        label_pieces(batch, [[1], [1]], pieces="last")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="first_pieces=True"):
        label_pieces(assemble_batch(flat, BERT, AssemblySpec()), [[1], [1]])
