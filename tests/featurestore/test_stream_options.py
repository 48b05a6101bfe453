"""What a stream may be asked for, and what is refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from syntax.errors import SpecError


@pytest.fixture
def data(filled):
    return filled.dataset("pairs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"matrices": "stored", "policy": "chain"}, "policy 'attach', not 'chain'"),
        ({"matrices": "stored", "separator_edge": "last_piece"}, "derive them"),
        ({"rank": 2, "world_size": 2}, "rank 2 is not one of 2 ranks"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"prefetch": -1}, "prefetch is -1"),
        ({"buffers": "shared"}, "buffers is 'shared'; it must be one of fresh, ring"),
        ({"world_size": 101}, "use fewer ranks"),
        ({"batch_size": 2.5}, r"batch_size is 2\.5; it must be a whole number"),
        ({"seed": "7"}, "seed is '7'; it must be a whole number"),
        ({"max_length": "128"}, "max_length is '128'"),
        ({"prefetch": None}, "prefetch is None"),
        ({"shuffle": "no"}, "shuffle is 'no'; it must be True or False"),
        ({"policy": None}, "policy is None; it must be a text"),
        ({"matrices": "distance"}, r"matrices is 'distance'; it must be a list: \['distance'\]"),
        ({"matrices": None}, "matrices is None; it must be a list"),
        ({"matrices": ("depth", "depth.v1")}, "'depth' and 'depth.v1' are the same"),
        ({"matrices": ("sla_mask", "sla_mask.v1")}, "'sla_mask' and 'sla_mask.v1' are the same"),
        ({"truncation_tie": "last"}, "truncation_tie is 'last'; it must be one of fast, slow"),
        ({"truncation_tie": None}, "truncation_tie is None; it must be a text"),
        ({"segment_limits": 5}, "segment_limits is 5; it must be a list"),
        ({"segment_limits": (1.5, 2)}, r"one of segment_limits is 1\.5"),
        ({"spans": "mentions"}, r"spans is 'mentions'; it must be a list: \['mentions'\]"),
        ({"samplers": ["phrase"]}, "one of samplers is 'phrase'; it must be a sampler"),
    ],
)
def test_options_that_make_no_sense_are_refused(data, options, message) -> None:
    with pytest.raises(SpecError, match=message):
        next(data.stream(**options))


def test_the_tie_says_which_of_equally_long_segments_is_cut(data) -> None:
    def kept(**tie):
        batches = data.stream(batch_size=8, max_length=10, shuffle=False, matrices=(), **tie)
        rows = [row for batch in batches for row in batch["segment_ids"]]
        return [(int((row == 0).sum()), int((row == 1).sum())) for row in rows]

    fast, slow = kept(), kept(truncation_tie="slow")
    assert kept(truncation_tie="fast") == fast
    moved = [pair for pair in zip(fast, slow, strict=True) if pair[0] != pair[1]]
    assert moved
    assert set(moved) == {((3, 4), (4, 3))}


def test_numbers_of_numpy_are_numbers(data) -> None:
    given = {"batch_size": np.int64(8), "seed": np.int32(3), "world_size": np.int64(1)}
    stream = data.stream(**given, shuffle=np.True_, matrices=["depth"])
    same = data.stream(batch_size=8, seed=3)
    assert json.loads(json.dumps(stream.state_dict())) == same.state_dict()
    assert [b["example_id"] for b in stream] == [b["example_id"] for b in same]
