"""States of words beside a dataset: written once, found by example, streamed with the rest."""

from __future__ import annotations

import numpy as np
import pytest

from featurestore import OrderPolicy, StatedDataset, WordStates, open_store
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.tables import states as states_table
from syntax.errors import SpecError, UnknownKeyError

WIDTH = 3


def words_of(data) -> list[list[int]]:
    """Words of each segment of each example."""
    found = []
    for batch in data.stream(batch_size=100, shuffle=False, max_length=None, matrices=()):
        for segments, words in zip(batch["segment_ids"], batch["word_ids"], strict=True):
            count = len(data.card.fields)
            found.append([int(words[segments == one].max(initial=-1)) + 1 for one in range(count)])
    return found


def states_for(data, base: float = 0.0) -> list[WordStates]:
    """States that tell the example and the word: no two are alike."""
    made = []
    for example, words in enumerate(words_of(data)):
        size = sum(words)
        states = np.stack(
            [np.full(size, base + example), np.arange(size), np.zeros(size)], axis=1
        ).astype(np.float16)
        made.append(WordStates(np.array(words, np.int32), states))
    return made


def stated(store, data, **content) -> StatedDataset:
    return StatedDataset(store, data, {"encoder": "e", "layer": 1, **content}, WIDTH)


def test_every_stream_gives_the_states_of_its_examples(store, data) -> None:
    there = stated(store, data)
    missing = there.without_states()
    assert len(missing) == len(data) == there.write(missing, states_for(data))
    ids = data.columns(["example_id"])["example_id"].to_pylist()
    seen = []
    for batch in there.stream(batch_size=4, seed=5, max_length=64, order=OrderPolicy(pool=1)):
        for example_id, own in zip(batch["example_id"], batch["word_states"], strict=True):
            assert own.states.dtype == np.float16
            assert (own.states[:, 0] == ids.index(example_id)).all()
            assert own.states[:, 1].tolist() == list(range(int(own.words.sum())))
            seen.append(example_id)
    assert sorted(seen) == sorted(ids)


def test_stored_states_are_not_requested_again(store, data) -> None:
    first = stated(store, data)
    some = data.where(longest=int(np.median(data.rows.pieces)))
    part = stated(store, some)
    made = states_for(data)
    chosen = np.isin(data.rows.keys[:, 0], some.rows.keys[:, 0])
    part.write(some, [one for one, here in zip(made, chosen, strict=True) if here])
    assert len(first.without_states()) == len(data) - len(some)
    rest = [one for one, here in zip(made, chosen, strict=True) if not here]
    first.write(first.without_states(), rest)
    with open_store(store.uri) as other:
        assert len(stated(other, other.dataset("pairs")).without_states()) == 0
    version = first.states.table.snapshot().version
    assert first.write(first.without_states(), []) == 0
    assert first.states.table.snapshot().version == version


def test_other_encoders_and_layers_have_their_own_table(store, data) -> None:
    one, other = stated(store, data), stated(store, data, layer=2)
    one.write(data, states_for(data))
    assert len(other.without_states()) == len(data)
    assert one.fingerprints["states"] != other.fingerprints["states"]
    assert one.fingerprints["examples"] == data.fingerprints["examples"]
    other.write(data, states_for(data, base=7))
    tables = [table for table in inspect_store(store) if table.table.startswith("states/")]
    assert [table.rows for table in tables] == [len(data)] * 2
    assert store.resolve(one.states.identity) == {"encoder": "e", "layer": 1, "width": WIDTH}


@pytest.mark.slow
def test_states_are_read_one_commit_at_a_time(store, data, monkeypatch) -> None:
    monkeypatch.setattr("featurestore.dataset.states.COMMIT_BYTES", 200)
    there = stated(store, data)
    taken = []

    def one_by_one():
        for number, one in enumerate(states_for(data)):
            taken.append((number, there.states.table.snapshot().version))
            yield one

    there.write(data, one_by_one())
    # Long before the last example is computed, the first ones are safe.
    assert taken[-1][1] >= 2
    assert len(there.without_states()) == 0


def test_an_example_without_states_is_named(store, data) -> None:
    there = stated(store, data)
    with pytest.raises(UnknownKeyError, match=r"examples have no states .* compute them again"):
        next(there.stream(batch_size=2))


@pytest.mark.parametrize(
    "states",
    [np.zeros((1, WIDTH), np.float16), np.zeros((2, WIDTH + 1), np.float16), np.zeros((2, WIDTH))],
)
def test_states_of_another_shape_or_dtype_are_refused(store, data, states) -> None:
    one = WordStates(np.array([1, 1], np.int32), states)
    with pytest.raises(SpecError, match=r"expected \(2, 3\) and float16"):
        stated(store, data).write(data, [one])


def test_row_groups_are_small(store, data, monkeypatch) -> None:
    monkeypatch.setattr(states_table, "ROW_GROUP_BYTES", 200)
    there = stated(store, data)
    there.write(data, states_for(data))
    found = there.states.read(data.rows.keys[::-1])
    assert [int(one.states[0, 0]) for one in found] == list(range(len(data)))[::-1]


def test_vacuum_includes_the_states_tables(store, data) -> None:
    stated(store, data).write(data, states_for(data))
    names = [one.table for one in vacuum_store(store, dry_run=True)]
    assert any(name.startswith("states/pairs/") for name in names)
