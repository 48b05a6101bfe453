"""Mixtures: shares, ends, resuming."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations

import pytest

from featurestore import FeatureMixture, OrderPolicy
from syntax.errors import SpecError


@pytest.fixture
def datasets(store, make_handle, rows):
    """A large, a middling and a small dataset."""
    for name, count in (("large", 96), ("middle", 40), ("small", 8)):
        store.features.append(make_handle(name=name), rows[:count])
    return {name: store.dataset(name) for name in ("large", "middle", "small")}


def names(mixture) -> list[str]:
    return [batch["dataset"] for batch in mixture]


def test_weight_of_one_eighth_gives_every_eighth_batch(datasets) -> None:
    chosen = {name: datasets[name] for name in ("large", "small")}
    mixture = FeatureMixture(chosen, weights={"large": 7, "small": 1}, batch_size=4)
    given = names(mixture)
    assert [at for at, name in enumerate(given) if name == "small"] == list(
        range(given.index("small"), len(given), 8)
    )
    assert given.count("large") == 24


def test_weights_by_size_end_all_datasets_together(datasets) -> None:
    given = list(FeatureMixture(datasets, batch_size=4, matrices=()))
    for name, data in datasets.items():
        batches = [batch["example_id"] for batch in given if batch["dataset"] == name]
        counts = Counter(example for batch in batches for example in batch)
        assert len(counts) == len(data)
        assert max(counts.values()) <= 2
    assert len(given) <= (96 + 40 + 8) / 4 + 3


def test_temperature_flattens_the_shares(datasets) -> None:
    def share(temperature: float) -> float:
        mixture = FeatureMixture(datasets, temperature=temperature, batch_size=2)
        given = names(mixture)
        return given.count("small") / len(given)

    assert share(1.0) < share(3.0) < share(1e9)
    assert share(1e9) == pytest.approx(1 / 3, abs=0.02)


def test_repeated_pass_of_a_short_dataset_has_another_order(datasets) -> None:
    equal = dict.fromkeys(datasets, 1.0)
    given = list(FeatureMixture(datasets, weights=equal, batch_size=8, bucket=False))
    passes = [batch["example_id"] for batch in given if batch["dataset"] == "small"]
    assert len(passes) == 11
    assert {frozenset(ids) for ids in passes} == {frozenset(passes[0])}
    assert len({tuple(ids) for ids in passes}) > 6


def test_the_shortest_ends_the_epoch(datasets) -> None:
    equal = dict.fromkeys(datasets, 1.0)
    given = names(FeatureMixture(datasets, weights=equal, until="shortest", batch_size=4))
    assert Counter(given)["small"] == 2
    assert len(given) <= 6


@pytest.mark.parametrize("until", ["longest", "shortest"])
@pytest.mark.parametrize("stop", [0, 1, 5, 17])
def test_a_saved_position_goes_on_with_the_very_next_batch(datasets, until, stop) -> None:
    def mixture() -> FeatureMixture:
        return FeatureMixture(datasets, temperature=4, until=until, batch_size=4, seed=3, epoch=1)

    whole = [(batch["dataset"], batch["example_id"]) for batch in mixture()]
    first = mixture()
    before = [(b["dataset"], b["example_id"]) for _, b in zip(range(stop), first, strict=False)]
    later = mixture()
    later.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert before + [(batch["dataset"], batch["example_id"]) for batch in later] == whole


def test_ranks_share_each_step_and_lose_nothing(datasets) -> None:
    ranks = [
        list(FeatureMixture(datasets, batch_size=2, rank=rank, world_size=2)) for rank in range(2)
    ]
    assert [b["dataset"] for b in ranks[0]] == [b["dataset"] for b in ranks[1]]
    large = [b["example_id"] for rank in ranks for b in rank if b["dataset"] == "large"]
    examples = [example for batch in large for example in batch]
    assert len(examples) == len(set(examples)) == 96


def test_a_state_of_another_mixture_or_of_a_single_stream_is_refused(datasets) -> None:
    state = FeatureMixture(datasets, batch_size=4).state_dict()
    with pytest.raises(SpecError, match="another mixture"):
        FeatureMixture(datasets, temperature=2, batch_size=4).load_state_dict(state)
    with pytest.raises(SpecError, match="another stream"):
        FeatureMixture(datasets, batch_size=8).load_state_dict(state)
    alone = datasets["large"].stream(batch_size=4)
    with pytest.raises(SpecError, match="another stream"):
        alone.load_state_dict(state)
    with pytest.raises(SpecError, match="saved in a stream of 'large' alone"):
        FeatureMixture(datasets, batch_size=4).load_state_dict(alone.state_dict())


def test_a_position_that_is_refused_leaves_the_mixture_where_it_is(datasets) -> None:
    def mixture(seed: int = 0) -> FeatureMixture:
        return FeatureMixture(datasets, batch_size=4, seed=seed)

    ahead, other, kept = mixture(), mixture(seed=1), mixture()
    for _ in range(5):
        next(ahead)
        next(other)
    state = ahead.state_dict()
    last = max(state["sources"])  # sources are moved by name
    state["sources"][last] = other.state_dict()["sources"][last]
    with pytest.raises(SpecError, match=f"{last}: the state was saved in another stream"):
        kept.load_state_dict(state)
    assert [b["example_id"] for b in kept] == [b["example_id"] for b in mixture()]


def test_a_dataset_that_fills_no_batch_is_refused(datasets) -> None:
    with pytest.raises(SpecError, match="small has 8 examples, too few for a batch"):
        FeatureMixture(datasets, batch_size=9, order=OrderPolicy(drop_last=True))
    with pytest.raises(SpecError, match="8 examples cannot be shared by 9 ranks"):
        FeatureMixture(datasets, batch_size=2, world_size=9)


@pytest.mark.slow
def test_the_order_in_which_datasets_are_named_has_no_effect(datasets) -> None:
    weights = {"large": 0.1, "middle": 0.2, "small": 0.3}

    def mixture(names, weights=weights) -> FeatureMixture:
        chosen = {name: datasets[name] for name in names}
        return FeatureMixture(
            chosen, weights={name: weights[name] for name in names}, batch_size=8, matrices=()
        )

    for shares in (weights, dict.fromkeys(datasets, 1)):
        whole = [(b["dataset"], b["example_id"]) for b in mixture(datasets, shares)]
        first = mixture(datasets, shares)
        before = [(b["dataset"], b["example_id"]) for _, b in zip(range(5), first, strict=False)]
        for names in permutations(datasets):
            later = mixture(names, shares)
            later.load_state_dict(first.state_dict())
            assert before + [(b["dataset"], b["example_id"]) for b in later] == whole


def test_datasets_of_different_tokenizers_are_not_mixed(datasets, store, make_handle, rows) -> None:
    other = make_handle(name="other", tokenizer="words", fingerprint="0" * 32)
    store.features.append(other, rows[:8])
    with pytest.raises(SpecError, match=r"one tokenizer; these are of .*'other': 'words'"):
        FeatureMixture({**datasets, "other": store.dataset("other")})


def test_mixture_refuses_invalid_datasets_by_name(datasets, store) -> None:
    for options, message in (
        ({"weights": {"large": 1}}, "weights came for"),
        ({"weights": {**dict.fromkeys(datasets, 1), "small": 0}}, "weight of small is 0"),
        ({"weights": {**dict.fromkeys(datasets, 1), "small": float("inf")}}, "small is inf"),
        ({"weights": {**dict.fromkeys(datasets, 1), "large": float("nan")}}, "large is nan"),
        ({"weights": {**dict.fromkeys(datasets, 1), "large": "1"}}, "large is '1'"),
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": 0.001}, r"leaves nothing to .*small"),
        ({"temperature": 1, "weights": {}}, "give one of them"),
        ({"until": "never"}, "until is 'never'; it must be one of longest, shortest"),
    ):
        with pytest.raises(SpecError, match=message):
            FeatureMixture(datasets, **options)
    with pytest.raises(SpecError, match="give each a name"):
        FeatureMixture(list(datasets.values()))
    with pytest.raises(SpecError, match="needs datasets"):
        FeatureMixture({})
    with pytest.raises(SpecError, match=r"without any: \['none'\]"):
        FeatureMixture({"none": datasets["large"].where(langs=[])})
