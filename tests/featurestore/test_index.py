from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from featurestore.tables.index import KeyIndex, keys_of

# Few distinct halves, so that many keys share the first or the second one.
half = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])
key = st.tuples(half, half)
files = st.lists(st.lists(key, max_size=12), max_size=8)


def array(keys: list[tuple[int, int]]) -> np.ndarray:
    return np.array(keys, dtype=np.uint64).reshape(-1, 2)


def filled(contents: list[list[tuple[int, int]]]) -> KeyIndex:
    index = KeyIndex()
    for number, keys in enumerate(contents):
        index.add(array(keys), number)
    return index


@given(files, st.lists(key))
def test_finds_exactly_the_keys_that_were_added(contents, wanted) -> None:
    found = filled(contents).find(array(wanted))
    for position, one in enumerate(wanted):
        places = {(f, r) for f, keys in enumerate(contents) for r, k in enumerate(keys) if k == one}
        place = (int(found.file[position]), int(found.row[position]))
        assert (place in places) if places else place[0] == -1


@given(files, key)
def test_find_one_agrees_with_find(contents, one) -> None:
    found = filled(contents).find_one(f"{one[0]:016x}{one[1]:016x}")
    places = {(f, r) for f, keys in enumerate(contents) for r, k in enumerate(keys) if k == one}
    assert found in places if places else found is None


@given(files, key)
def test_lacks_is_true_only_for_absent_keys(contents, one) -> None:
    high, low = one
    keys = {k for keys in contents for k in keys}
    lacking = filled(contents).lacks(f"{high:016x}{low:016x}")
    assert lacking == (high not in {half for half, _ in keys})
    assert not (lacking and one in keys)


@given(files, st.sets(st.integers(0, 7)), st.lists(key))
def test_index_forgets_removed_files(contents, removed, wanted) -> None:
    index = filled(contents)
    index.remove(removed)
    left = {k for f, keys in enumerate(contents) for k in keys if f not in removed}
    assert index.find(array(wanted)).found.tolist() == [one in left for one in wanted]
    assert len(index) == sum(len(k) for f, k in enumerate(contents) if f not in removed)


@given(files)
def test_index_reports_repeated_keys(contents) -> None:
    keys = [k for keys in contents for k in keys]
    assert filled(contents).has_repeats() == (len(set(keys)) < len(keys))


def test_many_small_files_make_few_runs_of_24_bytes_a_key() -> None:
    index = KeyIndex()
    for number in range(500):
        index.add(array([(number * 7919 % 1009, number)]), number)
    assert len(index.in_memory) < 12
    arrays = [(run.high, run.low, run.file, run.row) for run in index.in_memory]
    assert sum(array.nbytes for run in arrays for array in run) == 24 * 500
    assert index.find(array([(n * 7919 % 1009, n) for n in range(500)])).found.all()


def test_an_empty_index_finds_nothing() -> None:
    index = KeyIndex()
    assert not index.find(array([(1, 2)])).found.any()
    assert not index.has_repeats()


def test_keys_are_read_big_endian() -> None:
    assert keys_of(bytes.fromhex("00000000000000010000000000000002")).tolist() == [[1, 2]]
