"""Matrices of padded batches: the same as one by one, whatever the memory held before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.errors import CycleError, HeadOutOfRangeError, InputError
from syntax.matrices import (
    UNREACHABLE16,
    MatrixBuffers,
    TreeMatrices,
    batch_matrices,
    kernels,
    tree_depths,
    tree_matrices,
    tree_squares,
)

Forests = st.SearchStrategy[list[int]]

CHAIN = list(range(-1, 299))


def flat(trees: list[list[int]]) -> tuple[list[int], list[int]]:
    heads = [head for tree in trees for head in tree]
    return heads, np.cumsum([0, *map(len, trees)]).tolist()


def check(batch: TreeMatrices, trees: list[list[int]], length: int) -> None:
    assert batch.distance.shape == batch.ancestor.shape == (len(trees), length, length)
    assert batch.depth.shape == (len(trees), length)
    assert batch.depth.dtype == batch.distance.dtype
    assert all(array.flags.c_contiguous for array in (batch.distance, batch.depth, batch.ancestor))
    unreachable = np.iinfo(batch.distance.dtype).max
    for index, tree in enumerate(trees):
        one = tree_matrices(tree)
        distance = np.full((length, length), unreachable, batch.distance.dtype)
        apart = one.distance == np.iinfo(one.distance.dtype).max
        distance[: len(tree), : len(tree)] = np.where(
            apart, unreachable, one.distance.astype(batch.distance.dtype)
        )
        beyond = length - len(tree)
        np.testing.assert_array_equal(batch.distance[index], distance)
        np.testing.assert_array_equal(batch.depth[index], np.pad(one.depth, (0, beyond)))
        np.testing.assert_array_equal(
            batch.ancestor[index], np.pad(one.ancestor, ((0, beyond), (0, beyond)))
        )


@given(data=st.data(), multiple=st.sampled_from([1, 4, 8, 64]))
def test_a_batch_equals_its_trees_one_by_one(data, forests, multiple) -> None:
    trees = data.draw(st.lists(forests, max_size=5))
    longest = max(map(len, trees), default=0)
    length = -(-longest // multiple) * multiple
    check(batch_matrices(*flat(trees), pad_to_multiple_of=multiple), trees, length)


@given(data=st.data())
def test_trees_end_to_end_equal_each_one(data: st.DataObject, forests: Forests) -> None:
    trees = data.draw(st.lists(forests, max_size=5)) + data.draw(st.sampled_from([[], [CHAIN]]))
    ones = [tree_matrices(tree) for tree in trees]
    np.testing.assert_array_equal(
        tree_depths(*flat(trees)), np.concatenate([[], *(one.depth for one in ones)])
    )
    ancestors = np.concatenate([np.empty(0, bool), *(one.ancestor.ravel() for one in ones)])
    np.testing.assert_array_equal(tree_squares(*flat(trees), "ancestor"), ancestors)
    distances = [
        np.where(
            one.distance == np.iinfo(one.distance.dtype).max,
            UNREACHABLE16,
            one.distance.astype(np.uint16),
        )
        for one in ones
    ]
    expected = np.concatenate([[], *(distance.ravel() for distance in distances)])
    np.testing.assert_array_equal(tree_squares(*flat(trees), "distance"), expected)


@given(data=st.data())
def test_reused_memory_keeps_nothing_of_earlier_batches(data, forests) -> None:
    buffers = MatrixBuffers()
    batch_matrices(*flat([CHAIN, [-1] * 31]), buffers)
    for trees in data.draw(st.lists(st.lists(forests, min_size=1, max_size=4), max_size=3)):
        held = buffers.nbytes
        check(batch_matrices(*flat(trees), buffers), trees, max(map(len, trees)))
        assert buffers.nbytes == held


def test_one_long_path_widens_the_whole_batch() -> None:
    trees = [[-1, 0, -1], CHAIN, [-2]]
    batch = batch_matrices(*flat(trees))
    assert batch.distance.dtype == np.uint16
    check(batch, trees, 300)


def test_memory_is_overwritten_by_its_next_use_only() -> None:
    buffers = MatrixBuffers()
    first = batch_matrices([-1, 0], [0, 2], buffers)
    kept = first.distance.copy()
    batch_matrices([-1, 0], [0, 2], MatrixBuffers())
    np.testing.assert_array_equal(first.distance, kept)
    second = batch_matrices([-1, -1], [0, 2], buffers)
    assert np.shares_memory(first.distance, second.distance)
    assert first.distance.tolist() == [[[0, 255], [255, 0]]]


def test_memory_may_come_from_the_caller() -> None:
    given_out: list[np.ndarray[Any, Any]] = []

    def allocate(size: int) -> np.ndarray[Any, Any]:
        given_out.append(np.full(size, 77, np.uint8))
        return given_out[-1]

    batch = batch_matrices([-1, 0, 1], [0, 3], MatrixBuffers(allocate))
    check(batch, [[-1, 0, 1]], 3)
    for array in (batch.distance, batch.depth, batch.ancestor):
        assert any(np.shares_memory(array, block) for block in given_out)


def test_threads_with_their_own_buffers_do_not_interfere() -> None:
    def work(seed: int) -> bool:
        rng, buffers = np.random.default_rng(seed), MatrixBuffers()
        for _ in range(50):
            trees = [
                [int(rng.integers(-1, node)) if node else -1 for node in range(rng.integers(1, 40))]
                for _ in range(4)
            ]
            check(batch_matrices(*flat(trees), buffers), trees, max(map(len, trees)))
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_errors_name_the_tree_and_the_node_within_it() -> None:
    with pytest.raises(CycleError, match=r"tree 2 of the batch: .* nodes \[1, 2\]") as cycle:
        batch_matrices(*flat([[-1], [-1, 0], [-1, 2, 1]]))
    assert cycle.value.detail == {"tree": 2, "nodes": [1, 2]}
    # The parent exists in the flat array, but in the next tree.
    with pytest.raises(HeadOutOfRangeError, match="tree 1 of the batch: node 0 has parent 1"):
        batch_matrices(*flat([[-1], [1], [-1, 0]]))


@pytest.mark.parametrize("offsets", [[], [0], [0, 1], [0, 3], [1, 2], [0, 2, 1, 2], [[0, 2]], 2])
def test_offsets_must_span_the_nodes(offsets: Any) -> None:
    with pytest.raises(InputError, match="ascending from 0 to 2"):
        batch_matrices([-1, 0], offsets)


def test_the_padding_multiple_must_be_positive() -> None:
    with pytest.raises(InputError, match="pad_to_multiple_of is 0"):
        batch_matrices([-1], [0, 1], pad_to_multiple_of=0)


def test_each_pass_is_compiled_for_one_kind_of_array() -> None:
    read_only = np.array([-1, 0, 1], np.int32)
    read_only.flags.writeable = False
    for heads in (read_only, read_only.astype(np.int64), read_only.tolist(), CHAIN):
        batch_matrices(heads, np.array([0, len(heads)], np.int32))
    # What a pass calls is compiled with it, unless the pass comes from numba's cache.
    compiled = {
        name: len(item.signatures)
        for name, item in vars(kernels).items()
        if hasattr(item, "signatures") and not name.startswith("_")
    }
    assert compiled["fill_matrices"] == 2  # uint8 and uint16
    del compiled["fill_matrices"]
    assert max(compiled.values()) == 1
