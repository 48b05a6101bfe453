"""Streams whose examples become several sequences, and what they tell about pieces."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest

from featurestore import CrossedDataset
from syntax.batches import INSIDE, AssemblySpec, label_pieces, locate, spans_of_text

from .streams import (
    CHOICES,
    SENTENCES,
    WINDOWS,
    assert_all_same,
    ids,
    keywords,
)


@pytest.mark.parametrize("options", [WINDOWS, SENTENCES])
@pytest.mark.parametrize("world", [1, 3])
def test_no_piece_and_no_window_of_an_example_is_lost(data, rows, options, world) -> None:
    seen = {}
    for rank in range(world):
        for batch in data.stream(
            batch_size=7, seed=3, rank=rank, world_size=world, **keywords(**options)
        ):
            best = np.argwhere(batch["is_max_context"])
            for row, column in best.tolist():
                found = seen.setdefault(batch["example_id"][row], [])
                found.append((batch["segment_ids"][row, column], batch["piece_ids"][row, column]))
    limit = options.get("segment_limits", (None,))[0]
    assert seen.keys() == {row.example_id for row in rows}
    for row in rows:
        lengths = [len(row.segments[0].input_ids[:limit]), len(row.segments[1].input_ids)]
        wanted = [(at, n) for at, length in enumerate(lengths) for n in range(length)]
        assert sorted(seen[row.example_id]) == wanted


@pytest.mark.parametrize("options", [WINDOWS, SENTENCES, CHOICES])
def test_the_order_of_examples_is_that_without_windows(data, options) -> None:
    plain = data.stream(batch_size=7, seed=3, max_length=options["max_length"])
    stream = data.stream(batch_size=7, seed=3, **keywords(**options))
    for one, other in zip(stream, plain, strict=True):
        assert list(dict.fromkeys(one["example_id"])) == other["example_id"]


@pytest.mark.parametrize("options", [WINDOWS, CHOICES])
def test_a_restored_stream_goes_on_with_the_next_batch(data, options) -> None:
    options = keywords(**{"batch_size": 8, "seed": 4, **options})
    whole = list(data.stream(**options))
    first = data.stream(**options, prefetch=1, buffers="ring")
    list(islice(first, 5))
    state = json.loads(json.dumps(first.state_dict()))
    first.close()
    later = [data.stream(**options, rank=rank, world_size=2) for rank in range(2)]
    for stream in later:
        stream.load_state_dict(state)
    rest = [name for stream in later for name in ids(stream)]
    assert sorted(rest) == sorted(ids(whole[5:]))


def test_answers_reach_the_batch_and_come_back(data, rows) -> None:
    by_id = {row.example_id: row for row in rows}
    for batch in data.stream(batch_size=16, **keywords(**SENTENCES)):
        assert batch["offset_mapping"].dtype == np.int32
        first_of = np.unique(batch["example_index"], return_index=True)[1]
        segments = [by_id[batch["example_id"][row]].segments[1] for row in first_of]
        # The second piece of the passage, to the fourth: within its first sentence.
        spans = [(one.offsets[1, 0], one.offsets[3, 1]) for one in segments]
        found = locate(batch, spans, segment=1)
        inside = found.state == INSIDE
        assert np.bincount(batch["example_index"][inside]).tolist() == [1] * len(spans)
        back = spans_of_text(batch, found.start, found.end)[inside]
        assert back.tolist() == [list(span) for span in spans]


def test_stored_tags_are_labels_of_pieces(data, rows) -> None:
    by_id = {row.example_id: row for row in rows}
    for batch in data.stream(
        batch_size=16, max_length=48, assembly=AssemblySpec(first_pieces=True)
    ):
        features = [by_id[name].segments[0] for name in batch["example_id"]]
        tags = [
            one.deprel[np.unique(one.word_ids[one.word_ids >= 0], return_index=True)[1]]
            for one in features
        ]
        everywhere = label_pieces(batch, tags, pieces="all")
        ours = batch["segment_ids"] == 0
        assert (everywhere[ours] == batch["deprel"][ours]).all()
        labels = label_pieces(batch, tags)
        assert (
            labels[ours & batch["first_pieces"]] == batch["deprel"][ours & batch["first_pieces"]]
        ).all()
        assert (labels[~(ours & batch["first_pieces"])] == -100).all()


def test_crossed_datasets_have_offsets_too(filled, make_handle, rows) -> None:
    filled.features.append(make_handle(lang="de"), rows)
    sides = [filled.dataset("pairs", lang=lang) for lang in ("en", "de")]
    crossed = CrossedDataset(*sides, ["hypothesis"])
    options = keywords(**WINDOWS)
    assert_all_same(crossed.stream(**options), sides[0].stream(**options))
