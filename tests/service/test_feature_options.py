"""The options of ``/features``, and of the client, against those of assembly."""

from __future__ import annotations

from typing import get_type_hints

import pytest

from clients.client.features import FeatureOptions, StoredOptions
from service.routes.feature_schemas import FeatureQuery, FeaturesRequest
from syntax.batches import MAX_LENGTH, AssemblySpec
from syntax.options import options_of

OFFERED = {
    *("max_length", "policy", "joint_root", "separator_edge", "truncation", "truncation_tie"),
    "matrices",
}


@pytest.mark.parametrize(
    ("model", "keywords", "offered"),
    [
        (FeatureQuery, StoredOptions, OFFERED),
        (FeaturesRequest, FeatureOptions, OFFERED | {"pad_to_multiple_of"}),
    ],
)
def test_options_have_the_type_and_default_of_assembly(model, keywords, offered) -> None:
    options, fields, hints = options_of(AssemblySpec), model.model_fields, get_type_hints(keywords)
    assert options.keys() & fields.keys() == options.keys() & hints.keys() == offered
    for name in offered - {"max_length", "matrices"}:
        assert fields[name].annotation == hints[name] == options[name].kind, name
        assert fields[name].default == options[name].default, name
    assert hints["max_length"] == options["max_length"].kind
    assert fields["max_length"].default == MAX_LENGTH
    assert tuple(fields["matrices"].default) == options["matrices"].default


def test_options_of_a_request_reach_the_spec() -> None:
    given = {
        "max_length": None,
        "policy": "chain",
        "joint_root": False,
        "separator_edge": "none",
        "truncation": "only_first",
        "truncation_tie": "slow",
        "pad_to_multiple_of": 8,
    }
    request = FeaturesRequest(examples=[], padded=True, matrices=["depth", "depth"], **given)
    assert request.spec() == AssemblySpec(matrices=("depth",), **given)
