"""What a stream may be asked for, and what is refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from featurestore import FeatureMixture, OrderPolicy
from syntax.batches import AssemblySpec
from syntax.errors import SpecError, UnknownNameError

from .streams import assert_all_same, ids, keywords


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
        ({"template": "premise", "batch_tokens": 100}, "give batch_size"),
        ({"stride": 4, "truncation": "only_second", "batch_tokens": 100}, "give batch_size"),
        ({"template": "premise", "matrices": "stored"}, "derive them"),
        ({"stride": 4}, "only_first or only_second"),
        ({"stride": 4, "max_length": None, "truncation": "only_first"}, "without max_length"),
        ({"stride": 0}, "stride is 0"),
        ({"level": "paragraph"}, "one of document, sentence"),
        ({"truncation_side": ("left",)}, r"has 1 entries, and example 'ex-\d+' 2 parts"),
        ({"truncation_side": "front"}, "one of right, left"),
        ({"segment_limits": (0, None)}, "one of segment_limits is 0; it must be at least 1"),
        ({"stride": 4, "max_length": 5, "truncation": "only_second"}, "leaves no room"),
        ({"spans": ("label",)}, "'label' is of kind 'class'; spans are needed"),
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
    assert ids(stream) == ids(same)


def test_an_unknown_option_is_refused_by_name(data) -> None:
    with pytest.raises(UnknownNameError, match=r"'batchsize'.*Did you mean 'batch_size'"):
        FeatureMixture({"one": data}, batchsize=8)
    with pytest.raises(TypeError, match="batchsize"):
        data.stream(batchsize=8)
    with pytest.raises(UnknownNameError, match="Did you mean 'premise'"):
        data.stream(assembly=AssemblySpec(template="premises hypothesis"))
    with pytest.raises(UnknownNameError, match="mention"):
        next(data.stream(spans=["mention"]))


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
    for given in (objects, {**keywords, **objects}):
        assert_all_same(data.stream(**keywords), data.stream(**given))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 20, "assembly": AssemblySpec(max_length=30)}, "20, and 30 in `assembly`"),
        ({"seed": 1, "order": OrderPolicy(seed=2)}, "seed is 1, and 2 in `order`"),
        ({"matrices": "stored", "assembly": AssemblySpec(matrices=("depth",))}, "matrices is"),
        ({"matrices": ("sla_mask(treshold=4)",)}, "has no setting treshold=4"),
    ],
)
def test_contradictions_and_unknown_settings_are_refused_before_reading(
    data, options, message
) -> None:
    with pytest.raises(SpecError, match=message):
        data.stream(**options)
