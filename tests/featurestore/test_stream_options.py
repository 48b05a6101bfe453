"""What a stream may be asked for, and what is refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from featurestore import FeatureMixture, OrderPolicy
from syntax.batches import AssemblySpec
from syntax.errors import SpecError, UnknownNameError

from .streams import keywords


@pytest.fixture
def data(filled):
    return filled.dataset("pairs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"matrices": "stored", "policy": "chain"}, "policy 'attach', not 'chain'"),
        ({"matrices": "stored", "separator_edge": "last_piece"}, "derive them"),
        ({"rank": 2, "world_size": 2}, "rank 2 is not one of 2 ranks"),
        ({"rank": -1}, "rank is -1; it must be at least 0"),
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
        ({"truncation_tie": None}, "truncation_tie is None; it must be one of fast, slow"),
        ({"segment_limits": 5}, "segment_limits is 5; it must be a list"),
        ({"segment_limits": (1.5, 2)}, r"one of segment_limits is 1\.5"),
        ({"spans": "mentions"}, r"spans is 'mentions'; it must be a list: \['mentions'\]"),
        ({"samplers": ["phrase"]}, "one of samplers is 'phrase'; it must be a Sampler"),
    ],
)
def test_stream_refuses_invalid_options(data, options, message) -> None:
    with pytest.raises(SpecError, match=message):
        next(data.stream(**keywords(**options)))


def test_the_tie_says_which_of_equally_long_segments_is_cut(data) -> None:
    def kept(**tie):
        options = keywords(batch_size=8, max_length=10, shuffle=False, matrices=(), **tie)
        batches = data.stream(**options)
        rows = [row for batch in batches for row in batch["segment_ids"]]
        return [(int((row == 0).sum()), int((row == 1).sum())) for row in rows]

    fast, slow = kept(), kept(truncation_tie="slow")
    assert kept(truncation_tie="fast") == fast
    moved = [pair for pair in zip(fast, slow, strict=True) if pair[0] != pair[1]]
    assert moved
    assert set(moved) == {((3, 4), (4, 3))}


def test_numpy_numbers_are_accepted(data) -> None:
    given = {"batch_size": np.int64(8), "seed": np.int32(3), "world_size": np.int64(1)}
    stream = data.stream(**given, shuffle=np.True_, matrices=["depth"])
    same = data.stream(batch_size=8, seed=3)
    assert json.loads(json.dumps(stream.state_dict())) == same.state_dict()
    assert [b["example_id"] for b in stream] == [b["example_id"] for b in same]


def same(one, other) -> bool:
    return all(
        first.keys() == second.keys()
        and all(np.array_equal(first[name], second[name]) for name in first)
        for first, second in zip(one, other, strict=True)
    )


def test_an_unknown_option_is_refused_by_name(data) -> None:
    with pytest.raises(UnknownNameError, match=r"'batchsize'.*Did you mean 'batch_size'"):
        FeatureMixture({"one": data}, batchsize=8)
    with pytest.raises(TypeError, match="batchsize"):
        data.stream(batchsize=8)


@pytest.mark.parametrize(
    ("keywords", "objects"),
    [
        ({"max_length": 20}, {"assembly": AssemblySpec(max_length=20)}),
        ({"matrices": ("depth",)}, {"assembly": AssemblySpec(matrices=("depth",))}),
        ({"policy": "chain"}, {"assembly": AssemblySpec(policy="chain")}),
        ({"batch_size": 4, "seed": 3}, {"order": OrderPolicy(batch_size=4, seed=3)}),
        ({"shuffle": False}, {"order": OrderPolicy(shuffle=False)}),
        ({}, {"assembly": AssemblySpec(), "order": OrderPolicy()}),
    ],
)
def test_an_option_is_given_as_a_keyword_or_in_its_object(data, keywords, objects) -> None:
    assert same(data.stream(**keywords), data.stream(**objects))
    assert same(data.stream(**keywords), data.stream(**keywords, **objects))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 20, "assembly": AssemblySpec(max_length=30)}, "20, and 30 in `assembly`"),
        ({"seed": 1, "order": OrderPolicy(seed=2)}, "seed is 1, and 2 in `order`"),
        ({"matrices": "stored", "assembly": AssemblySpec(matrices=("depth",))}, "matrices is"),
    ],
)
def test_a_keyword_that_contradicts_its_object_is_refused(data, options, message) -> None:
    with pytest.raises(SpecError, match=message):
        data.stream(**options)


def test_no_limit_is_given_as_a_keyword(data) -> None:
    uncut = next(data.stream(64, max_length=None, assembly=AssemblySpec(offsets=True)))
    assert uncut["lengths"].max() > 40
    assert next(data.stream(64, assembly=AssemblySpec(max_length=40)))["lengths"].max() == 40
