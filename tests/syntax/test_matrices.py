"""Matrices of one tree: worked examples, brute force, networkx, and what must be refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import syntax
from syntax.errors import CycleError, HeadOutOfRangeError, InputError
from syntax.matrices import (
    MATRICES,
    UNREACHABLE8,
    UNREACHABLE16,
    ancestor_mask,
    tree_depth,
    tree_distance,
    tree_matrices,
)

SlowMatrices = Callable[[list[int]], Any]
Forests = st.SearchStrategy[list[int]]


def caterpillar(legs: int) -> list[int]:
    """A spine with one leg at each vertebra."""
    return [-1, 0] + [node for at in range(2, 2 * legs, 2) for node in (at - 2, at)]


def shuffled(parents: list[int], seed: int) -> list[int]:
    """The same tree with its nodes in another order."""
    places = np.random.default_rng(seed).permutation(len(parents)).tolist()
    moved = [-1] * len(parents)
    for node, parent in enumerate(parents):
        moved[places[node]] = places[parent] if parent >= 0 else parent
    return moved


SHAPES = {
    "star": [-1] + [0] * 60,
    "star rooted at its end": [60] * 60 + [-1],
    "chain": list(range(-1, 70)),
    "chain rooted at its end": [*range(1, 71), -1],
    "caterpillar": caterpillar(40),
    "shuffled caterpillar": shuffled(caterpillar(40), 1),
    "two shuffled chains": shuffled([*range(-1, 40), -1, *range(41, 60)], 2),
}
"""Larger than those that hypothesis draws."""


def check(parents: list[int], slow_matrices: SlowMatrices) -> None:
    slow = slow_matrices(parents)
    fast = tree_matrices(parents)
    size = len(parents)
    unreachable = np.iinfo(fast.distance.dtype).max
    expected = [[unreachable if cell is None else cell for cell in row] for row in slow.distance]
    assert fast.distance.shape == fast.ancestor.shape == (size, size)
    assert fast.distance.tolist() == expected
    assert fast.depth.tolist() == slow.depth
    assert fast.ancestor.tolist() == slow.ancestor
    assert fast.depth.dtype == fast.distance.dtype
    assert fast.ancestor.dtype == np.bool_
    for one, three in (
        (tree_distance(parents), fast.distance),
        (tree_depth(parents), fast.depth),
        (ancestor_mask(parents), fast.ancestor),
    ):
        assert one.dtype == three.dtype
        assert one.flags.c_contiguous
        np.testing.assert_array_equal(one, three)


def test_a_sentence_worked_by_hand() -> None:
    # "the dog chased a cat": the -> dog -> chased <- cat <- a
    parents = [1, 2, -1, 4, 2]
    assert tree_distance(parents).tolist() == [
        [0, 1, 2, 4, 3],
        [1, 0, 1, 3, 2],
        [2, 1, 0, 2, 1],
        [4, 3, 2, 0, 1],
        [3, 2, 1, 1, 0],
    ]
    assert tree_depth(parents).tolist() == [2, 1, 0, 2, 1]
    # Row "the" attends to itself, to "dog" and to "chased".
    assert ancestor_mask(parents).tolist() == [
        [True, True, True, False, False],
        [False, True, True, False, False],
        [False, False, True, False, False],
        [False, False, True, True, True],
        [False, False, True, False, True],
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_equals_brute_force(shape: str, slow_matrices: SlowMatrices) -> None:
    check(SHAPES[shape], slow_matrices)


@given(data=st.data())
def test_any_forest_equals_brute_force(data, forests, slow_matrices) -> None:
    check(data.draw(forests), slow_matrices)


@pytest.mark.slow
@given(st.integers(1, 400), st.integers(0, 2**32 - 1), st.floats(0, 1))
@example(256, 0, 1.0)
@example(257, 0, 1.0)
def test_large_trees_equal_brute_force_in_three_rows(size: int, seed: int, depth: float) -> None:
    rng = np.random.default_rng(seed)
    parents = [-1] + [
        node - 1 if rng.random() < depth else int(rng.integers(node)) for node in range(1, size)
    ]
    parents = shuffled(parents, seed)
    graph = nx.Graph([(node, parent) for node, parent in enumerate(parents) if parent >= 0])
    graph.add_nodes_from(range(size))
    distance = tree_distance(parents)
    longest = nx.diameter(graph)
    assert distance.dtype == (np.uint8 if longest <= 254 else np.uint16)
    for start in rng.integers(size, size=3).tolist():
        steps = nx.single_source_shortest_path_length(graph, start)
        assert distance[start].tolist() == [steps[node] for node in range(size)]
    np.testing.assert_array_equal(distance, distance.T)


@pytest.mark.slow
def test_real_trees_equal_networkx(treebank_trees: list[list[int]]) -> None:
    assert len(treebank_trees) > 5000
    for parents in treebank_trees:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(parents)))
        graph.add_edges_from((parent, node) for node, parent in enumerate(parents) if parent >= 0)
        fast = tree_matrices(parents)
        for start, steps in nx.all_pairs_shortest_path_length(graph.to_undirected(as_view=True)):
            assert dict(enumerate(fast.distance[start].tolist())) == steps
        for node in graph:
            assert set(np.flatnonzero(fast.ancestor[node])) == nx.ancestors(graph, node) | {node}
        root = parents.index(-1)
        assert dict(enumerate(fast.depth.tolist())) == nx.shortest_path_length(graph, root)


@pytest.mark.slow
def test_real_texts_of_many_sentences_equal_brute_force(treebank_trees, slow_matrices) -> None:
    for first in range(0, 200, 5):
        text: list[int] = []
        for parents in treebank_trees[first : first + 5]:
            text += [parent + len(text) if parent >= 0 else -1 for parent in parents]
        check(text, slow_matrices)


@pytest.mark.slow
@pytest.mark.parametrize("size", [128, 255, 256, 512, 1000])
@pytest.mark.parametrize("backwards", [False, True])
def test_matrices_of_chains_of_any_length(size: int, backwards: bool) -> None:
    parents = np.arange(1, size + 1) if backwards else np.arange(-1, size - 1)
    parents[-1 if backwards else 0] = -1
    fast = tree_matrices(parents)
    place = np.arange(size)
    np.testing.assert_array_equal(fast.distance, abs(place[:, None] - place))
    np.testing.assert_array_equal(fast.depth, place[::-1] if backwards else place)
    below = place[:, None] <= place if backwards else place[:, None] >= place
    np.testing.assert_array_equal(fast.ancestor, below)


def arms(left: int, right: int) -> list[int]:
    """Two chains that meet in their common root: the longest path is ``left + right``."""
    second = [0, *range(left + 1, left + right)] if right else []
    return [-1, *range(left), *second]


@pytest.mark.parametrize(
    ("parents", "dtype"),
    [
        (arms(254, 0), np.uint8),
        (arms(255, 0), np.uint16),
        (arms(127, 127), np.uint8),
        (arms(127, 128), np.uint16),
    ],
)
def test_dtype_widens_when_a_path_exceeds_254(parents: list[int], dtype: type) -> None:
    fast = tree_matrices([*parents, -1])
    assert fast.distance.dtype == fast.depth.dtype == tree_depth([*parents, -1]).dtype == dtype
    assert fast.distance[:-1, :-1].max() == len(parents) - 1
    assert (fast.distance[-1, :-1] == np.iinfo(dtype).max).all()
    assert np.iinfo(dtype).max in (UNREACHABLE8, UNREACHABLE16)


def test_paths_beyond_uint16_are_refused() -> None:
    assert tree_depth(np.arange(-1, 65534)).max() == 65534
    with pytest.raises(InputError, match="a path has 65535 edges; matrices hold at most 65534"):
        tree_depth(np.arange(-1, 65535))


@pytest.mark.parametrize("make", MATRICES.values(), ids=list(MATRICES))
class TestInvalid:
    """Syntax-MBERT as released silently gives the matrix of one component, a smaller one."""

    def test_two_roots_keep_their_size(self, make: Callable[..., Any]) -> None:
        assert set(make([-1, 0, -1, 2]).shape) == {4}

    @pytest.mark.parametrize(
        ("parents", "cycle"),
        [
            ([0], [0]),
            ([1, 0], [0, 1]),
            ([-1, 2, 3, 1], [1, 2, 3]),
            ([-1, 0, 3, 4, 3, 2], [3, 4]),
            ([1, 2, 3, 3], [3]),
            ([*range(1, 300), 7], list(range(7, 300))),
        ],
    )
    def test_cycles_are_refused_with_their_nodes(self, make, parents, cycle) -> None:
        with pytest.raises(CycleError, match="form a cycle") as caught:
            make(parents)
        assert sorted(caught.value.detail["nodes"]) == cycle

    @pytest.mark.parametrize("parent", [3, 4, -3, 127, 2**31 - 1, 2**31, 2**40, -(2**40)])
    def test_parents_out_of_range_are_refused(self, make: Callable[..., Any], parent: int) -> None:
        with pytest.raises(HeadOutOfRangeError, match="node 1 has parent") as caught:
            make([-1, parent, 0])
        assert caught.value.detail["node"] == 1

    def test_huge_unsigned_parents_are_refused(self, make: Callable[..., Any]) -> None:
        with pytest.raises(HeadOutOfRangeError, match="node 0 has parent"):
            make(np.array([2**64 - 1, 0], np.uint64))

    @pytest.mark.parametrize(
        "parents",
        [np.zeros((2, 2), int), 3, [0.5, -1], np.array([-1.0, 0.0]), [True, False], ["a"], [None]],
    )
    def test_values_that_are_not_a_vector_of_integers_are_refused(self, make, parents) -> None:
        with pytest.raises(InputError, match="give one vector of integers"):
            make(parents)


@given(data=st.data())
def test_a_cycle_anywhere_in_a_forest_is_found(data: st.DataObject, forests: Forests) -> None:
    parents = data.draw(forests.filter(len))
    bottom = data.draw(st.integers(0, len(parents) - 1))
    path = [bottom]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    parents[path[-1]] = bottom
    with pytest.raises(CycleError) as caught:
        tree_matrices(parents)
    assert sorted(caught.value.detail["nodes"]) == sorted(path)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, ">i4", np.uint8, np.uint16, np.uint32, "u8"]
)
def test_any_integer_dtype_is_taken(dtype: Any) -> None:
    parents = [-1, 0, 1, 1]
    if np.dtype(dtype).kind == "u":
        with pytest.raises(HeadOutOfRangeError):
            tree_distance(np.array(parents).astype(dtype))
        return
    given_parents = np.array(parents, dtype)
    np.testing.assert_array_equal(tree_distance(given_parents), tree_distance(parents))
    np.testing.assert_array_equal(given_parents, np.array(parents, dtype))


def test_strided_and_read_only_parents_are_taken() -> None:
    parents = np.array([-1, 9, 0, 9, 1, 9], np.int32)
    assert tree_depth(parents[::2]).tolist() == [0, 1, 2]
    assert tree_depth((-1, 0, 1)).tolist() == [0, 1, 2]
    read_only = np.frombuffer(b"\0" + parents[::2].tobytes(), np.int32, offset=1)
    assert not read_only.flags.writeable
    assert not read_only.flags.aligned
    assert tree_depth(read_only).tolist() == [0, 1, 2]


def test_results_share_no_memory() -> None:
    first = tree_matrices([-1, 0])
    first.distance[:] = 9
    first.ancestor[:] = False
    assert tree_matrices([-1, 0]).distance.tolist() == [[0, 1], [1, 0]]
    assert first.distance.tolist() == [[9, 9], [9, 9]]


def test_a_node_may_show_its_parents_row_and_column() -> None:
    # "play ##ing outside", outside hanging from playing: the pieces of a word are one point.
    fast = tree_matrices([-1, 0, 0], source=[0, 0, 2])
    assert fast.distance.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert fast.depth.tolist() == [0, 0, 1]
    assert fast.ancestor.tolist() == [[True, True, False], [True, True, False], [True, True, True]]


@pytest.mark.parametrize(
    ("parents", "source"),
    [([-1, 0], [1, 1]), ([-1, 0, 1], [0, 0, 1]), ([-1], [-1]), ([-1, 0], [0]), ([-1, 0], [0, 7])],
)
def test_a_source_is_the_node_or_its_parent(parents: list[int], source: list[int]) -> None:
    with pytest.raises(InputError, match="source"):
        tree_matrices(parents, source)


def test_names_are_exported_from_syntax_and_registered() -> None:
    assert syntax.tree_distance is MATRICES["distance"] is MATRICES["distance.v1"]
    assert syntax.tree_depth is MATRICES["depth"]
    assert syntax.ancestor_mask is MATRICES["ancestor"]
    assert {"tree_distance", "tree_depth", "ancestor_mask"} <= set(syntax.__all__)
    with pytest.raises(AttributeError, match="tree_height"):
        _ = syntax.tree_height


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("size", [0, 1, 5])
def test_every_registered_matrix_has_axes_of_the_trees_length(name: str, size: int) -> None:
    matrix = MATRICES[name](np.arange(-1, size - 1))
    assert matrix.ndim in (1, 2)
    assert set(matrix.shape) == {size}
