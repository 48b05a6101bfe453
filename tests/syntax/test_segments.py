"""Examples laid end to end: taking some of them, and parts of them, gives what indexing gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syntax.batches import FlatExamples

Sizes = list[list[int]]

SIZES = st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=5)


def numbered(sizes: Sizes) -> FlatExamples:
    """Examples of segments of these sizes; every number of every column is another."""
    segments = [size for example in sizes for size in example]
    numbers = np.arange(sum(segments))
    return FlatExamples(
        **dict.fromkeys(("input_ids", "head", "word_ids", "sentence_ids"), numbers),
        **dict.fromkeys(("upos", "deprel"), numbers % 251),
        segment_offsets=np.cumsum([0, *segments]),
        example_offsets=np.cumsum([0, *map(len, sizes)]),
        offsets=np.stack([numbers, -numbers], axis=1),
    )


def listed(examples: FlatExamples) -> list[list[dict[str, Any]]]:
    """Each segment of each example, column by column."""
    bounds, found = examples.segment_offsets, []
    for first, last in zip(examples.example_offsets, examples.example_offsets[1:]):  # noqa: B905 - pairs
        runs = [slice(bounds[at], bounds[at + 1]) for at in range(first, last)]
        columns = examples.columns.items()
        found.append([{name: values[run].tolist() for name, values in columns} for run in runs])
    return found


@given(SIZES, st.data())
def test_examples_may_be_taken_in_any_order_and_twice(sizes: Sizes, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=8))
    examples = numbered(sizes)
    whole = listed(examples)
    assert listed(examples.take(rows)) == [whole[row] for row in rows]


@given(SIZES, st.data())
def test_a_slice_is_a_view_of_consecutive_examples(sizes: Sizes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(sizes)))
    end = data.draw(st.integers(start, len(sizes)))
    examples = numbered(sizes)
    part = examples.slice(start, end)
    assert listed(part) == listed(examples)[start:end]
    assert not len(part.input_ids) or np.shares_memory(part.input_ids, examples.input_ids)
    assert listed(part.take(range(len(part)))) == listed(part)
