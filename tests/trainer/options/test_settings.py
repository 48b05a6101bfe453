"""Objectives, streams and optimizers of a recipe: settings, JSON, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import nan
from typing import Annotated, Any, get_origin, get_type_hints

import pytest

from syntax.errors import SpecError, UnknownNameError
from trainer.objectives import OBJECTIVES, ObjectiveEntry
from trainer.options import (
    GateOptions,
    MlmOptions,
    ObjectiveOptions,
    Recipe,
    TrainingOptions,
)
from trainer.options.settings import described, options, recipe_from_json, with_settings
from trainer.recipes import RECIPES
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS


@dataclass(frozen=True, slots=True)
class HeightOptions(ObjectiveOptions):
    """Options of an objective that only these tests have."""

    name: str = "height.v1"
    rank: int = 4


@pytest.fixture(autouse=True)
def objective(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBJECTIVES._items, "height.v1", ObjectiveEntry(HeightOptions, ""))


GOLD = {"name": "gold", "data": {"dataset": "ud"}, "share": 0.25}
FULL = (
    'objectives=[{"name": "height.v1", "weight": 0.5}]',
    f"streams={json.dumps([{**GOLD, 'objectives': [{'name': 'height.v1', 'rank': 8}]}])}",
    'optimizers=[{"name": "main"}, {"name": "slow", "parameters": "head", "every": 5, '
    '"groups": [{"name": "bias", "parameters": ["head.bias"], "weight_decay": 0}]}]',
)


@pytest.fixture
def full() -> Recipe:
    return with_settings(RECIPES["xnli"](), FULL)


def test_a_recipe_with_all_lists_survives_json(full) -> None:
    assert full.objectives == (HeightOptions(weight=0.5),)
    assert full.streams[0].objectives == (HeightOptions(rank=8),)
    assert full.optimizers[1].groups[0].weight_decay == 0.0
    assert recipe_from_json(json.loads(json.dumps(full.to_json()))) == full


def test_settings_reach_entries_by_name(full) -> None:
    changed = with_settings(
        full,
        [
            *(
                "objectives.height.weight=0.1",
                "streams.gold.share=0.125",
                "streams.gold.joins=true",
            ),
            *("streams.gold.data.lang=wo,mt", "streams.gold.objectives.height.rank=2"),
            *('streams.gold.task={"name": "relation.v1"}', "optimizers.main.learning_rate=1e-4"),
            *("optimizers.slow.groups.bias.learning_rate=1", "optimizers.slow.betas=0.9,0.98"),
        ],
    )
    assert changed.objectives[0].weight == 0.1
    (gold,) = changed.streams
    assert (gold.share, gold.joins, gold.data.lang) == (0.125, True, "wo,mt")
    assert gold.task is not None
    assert gold.task.name == "relation.v1"
    assert gold.objectives[0] == HeightOptions(rank=2)
    main, slow = changed.optimizers
    assert (main.learning_rate, slow.betas) == (1e-4, (0.9, 0.98))
    assert slow.groups[0].learning_rate == 1.0
    assert with_settings(changed, ["streams.gold.task=null"]).streams[0].task is None


def test_a_recipe_lists_its_entries_and_others_read_as_before(full) -> None:
    rows = {key: value for key, _, value in described(full)}
    assert rows["objectives.height.name"] == "height.v1"
    assert rows["streams.gold.data.dataset"] == "ud"
    assert rows["optimizers.slow.every"] == 5
    plain = RECIPES["sla-cola"]()
    assert {key.split(".")[0] for key in options(plain)} == {"data", "model", "task", "training"}
    assert set(plain.to_json()) == {"name", "data", "model", "task", "training"}


def test_a_bare_key_means_the_main_stream(full) -> None:
    changed = with_settings(full, ["lang=de"])
    assert (changed.data.lang, changed.streams[0].data.lang) == ("de", "en")


def test_another_objective_keeps_the_weight(full, monkeypatch) -> None:
    monkeypatch.setitem(OBJECTIVES._items, "other.v1", ObjectiveEntry(ObjectiveOptions, ""))
    (other,) = with_settings(full, ["objectives.height.name=other.v1"]).objectives
    assert other == ObjectiveOptions("other.v1", 0.5)


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ("objectives=tree_depth.v1", SpecError, "be 'tree_depth.v1'; it is an object"),
        ('objectives=[{"weight": 1}]', SpecError, r"objectives\.name is missing"),
        ("objectives.tree_depth.rank=3", UnknownNameError, r"does not list .* `objectives=\[\{"),
        ('objectives=[{"name": "hight.v1"}]', UnknownNameError, "Did you mean 'height.v1'"),
        ('objectives=[{"name": "height.v1", "size": 1}]', UnknownNameError, r"objectives\.size"),
        ("objectives.height.weight=-1", SpecError, r"weight is -1.0; it must be at least 0"),
        ("streams.gold.share=0", SpecError, "share is 0.0; it must be above 0 and at most 1"),
        ("streams.gold.share=1", SpecError, "none is left to the main one"),
        ("streams.gold.name=main", SpecError, "one of streams has the name 'main'"),
        ('streams=[{"name": "a"}]', SpecError, r"streams\.data is missing"),
        ('streams=[{"name": "a b", "data": {"dataset": "ud"}}]', SpecError, "the name 'a b'"),
        ("streams.silver.share=0.5", UnknownNameError, r"Did you mean 'streams\.gold\.share'"),
        ("optimizers.slow.every=0", SpecError, "every is 0; it must be at least 1"),
        ("optimizers.slow.name=main", SpecError, "optimizers has main twice"),
        ("training.betas=0.9", SpecError, "it must be two numbers from 0 and below 1"),
        ("training=1", UnknownNameError, "recipe option 'training'"),
    ],
)
def test_entries_that_do_not_fit_are_refused_by_name(full, setting, error, message) -> None:
    with pytest.raises(error, match=message):
        with_settings(full, [setting])


def test_objectives_of_syntax_states_go_with_a_model_that_has_none() -> None:
    recipe = with_settings(RECIPES["sample"](), ["model.name=sla.v1"])
    assert recipe.objectives == ()
    kept = ["objectives.tree_depth.states=last", "model.name=sla.v1"]
    (depth,) = with_settings(RECIPES["sample"](), kept).objectives
    assert (depth.name, depth.weight) == ("tree_depth.v1", 0.01)


OPTIONS = [
    TrainingOptions,
    *(found.options for registry in (SYSTEMS, TASKS, OBJECTIVES) for found in registry.values()),
]


@pytest.mark.parametrize("owner", OPTIONS, ids=lambda owner: owner.__name__)
def test_a_subclass_keeps_the_bounds_of_an_option_that_it_declares_again(owner: type[Any]) -> None:
    bounds = get_type_hints(owner, include_extras=True)
    for base in owner.__mro__[1:]:
        for name, kind in get_type_hints(base, include_extras=True).items():
            if get_origin(kind) is Annotated:
                assert get_origin(bounds[name]) is Annotated, (base, name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda: TrainingOptions(warmup_share=nan), r"training\.warmup_share is nan; it must be"),
        (lambda: TrainingOptions(max_steps=0), "max_steps is 0; it must be at least 1"),
        (lambda: TrainingOptions(epochs="5"), "epochs is '5'; it must be a number"),
        (lambda: TrainingOptions(keep="worst"), "keep is 'worst'; it is one of best, last"),
        (lambda: GateOptions(deltas=(2, 0)), "deltas is 0; it must be at least 1 and at most 254"),
        (lambda: GateOptions(dropout=1.5), r"model\.dropout is 1\.5; it must be at least 0"),
        (lambda: MlmOptions(masked=0.0), "task.masked is 0.0; it must be above 0 and at most 1"),
    ],
)
def test_options_are_checked_by_their_annotations(options: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        options()
