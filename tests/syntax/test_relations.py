"""Relations beyond distance, depth and ancestor: worked examples, twins, published and released."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax import read_conllu
from syntax.errors import CycleError, InputError, SpecError
from syntax.matrices import (
    MATRICES,
    common_ancestor,
    common_ancestors,
    distance_weights,
    gate_weights,
    lca_depth,
    lowest_common_ancestor,
    pruned_distance,
    relations,
    released_punctuation,
    sgnet_mask,
    sla_mask,
    subtrees,
    tree_depth,
    tree_distance,
    windowed_distance,
)
from syntax.subwords import broadcast
from syntax.ud import upos_id
from tests.syntax.relation_twins import Twin

Forests = st.SearchStrategy[list[int]]
Texts = st.SearchStrategy[Any]

# "the dog chased a cat": the -> dog -> chased <- cat <- a
DOG = [1, 2, -1, 4, 2]
# The dependents of 3 are 0 and 4; 1 and 2, which lie between, hang from 5.
CROSSING = [3, 5, 5, 5, 3, -1]


def filled(cells: list[list[int | None]], matrix: np.ndarray[Any, Any]) -> list[list[int]]:
    none = int(np.iinfo(matrix.dtype).max)
    return [[none if cell is None else cell for cell in row] for row in cells]


@st.composite
def shown_forests(draw: st.DrawFn, forests: Forests) -> tuple[list[int], list[int]]:
    """A forest of which some leaves show their parents, as later pieces do."""
    parents = draw(forests)
    leaves = [node for node in range(len(parents)) if node not in parents and parents[node] >= 0]
    later = draw(st.sets(st.sampled_from(leaves))) if leaves else set()
    return parents, [parents[node] if node in later else node for node in range(len(parents))]


class TestWindowedDistance:
    def test_a_sentence_worked_by_hand(self) -> None:
        # From "a" (D = 4 3 2 0 1), "chased" (2 1 0 2 1) and "cat" (3 2 1 1 0).
        assert windowed_distance(DOG)[3].tolist() == [2, 1, 0, 0, 0]
        assert windowed_distance(DOG, variant="as_released")[3].tolist() == [2, 1, 0, 0, 1]

    def test_the_released_window_lacks_the_right_neighbour(self) -> None:
        released = windowed_distance(DOG, variant="as_released")
        distance = tree_distance(DOG)
        assert released[1:].tolist() == np.minimum(distance[1:], distance[:-1]).tolist()
        assert released[0].tolist() == distance[0].tolist()
        assert (windowed_distance(DOG)[0] < released[0]).any()

    @settings(max_examples=60)
    @given(data=st.data())
    def test_any_forest_equals_its_twin(self, data: st.DataObject, forests: Forests) -> None:
        parents, source = data.draw(shown_forests(forests))
        twin = Twin(parents, source)
        for variant, right in (("as_published", True), ("as_released", False)):
            fast = windowed_distance(parents, source=source, variant=variant)
            slow = twin.square(lambda one, other, right=right: twin.windowed(one, other, right))
            assert fast.tolist() == filled(slow, fast)
            assert fast.dtype == tree_distance(parents).dtype

    def test_long_paths_stay_exact(self) -> None:
        chain = np.arange(-1, 399)
        far = windowed_distance(chain)
        assert far.dtype == np.uint16
        assert far[0, 399] == 398
        assert far[5, 5:8].tolist() == [0, 0, 1]


class TestSlaMask:
    SPECIAL = (True, False, False, False, False, False, True)
    TREE = (-1, 2, 3, -1, 5, 3, -1)

    def test_special_tokens_see_all_and_are_seen(self) -> None:
        mask = sla_mask(self.TREE, special=self.SPECIAL, threshold=0)
        assert mask[[0, 6]].all()
        assert mask[:, [0, 6]].all()
        # Distance 0 in the window: oneself and one's neighbours.
        assert mask[2].tolist() == [True, True, True, True, False, False, True]

    def test_released_separators_see_nothing_themselves(self) -> None:
        mask = sla_mask(self.TREE, special=self.SPECIAL, variant="as_released", threshold=1)
        assert mask[0].all()
        assert not mask[6].any()
        assert mask[1:6, [0, 6]].all()

    def test_punctuation_is_visible_to_all_when_asked(self) -> None:
        upos = [0, 1, 1, 1, upos_id("PUNCT"), 1, 0]
        quiet = sla_mask(self.TREE, special=self.SPECIAL, upos=upos, threshold=0)
        loud = sla_mask(self.TREE, special=self.SPECIAL, upos=upos, threshold=0, punctuation=True)
        assert not quiet[1, 4]
        assert loud[:, 4].all()
        others = [0, 1, 2, 3, 5, 6]
        np.testing.assert_array_equal(quiet[:, others], loud[:, others])

    @settings(max_examples=60)
    @given(data=st.data(), threshold=st.integers(0, 5), released=st.booleans())
    def test_any_forest_equals_its_twin(
        self, data: st.DataObject, threshold: int, released: bool, forests: Forests
    ) -> None:
        parents, source = data.draw(shown_forests(forests))
        size = len(parents)
        special = [parent == -2 for parent in parents]
        upos = data.draw(st.lists(st.integers(0, 17), min_size=size, max_size=size))
        twin = Twin(parents, source)

        def sees(one: int, other: int) -> bool:
            if special[one]:
                return special.index(True) == one or not released
            shown = source[other]
            if special[shown] or upos[shown] == upos_id("PUNCT"):
                return True
            steps = twin.windowed(one, other, not released)
            return steps is not None and steps <= threshold

        mask = sla_mask(
            parents,
            source=source,
            special=special,
            upos=upos,
            threshold=threshold,
            variant="as_released" if released else "as_published",
            punctuation=True,
        )
        assert mask.tolist() == twin.square(sees)

    def test_a_threshold_beyond_the_dtype_does_not_join_trees(self) -> None:
        assert sla_mask([-1, -1, -1], threshold=400)[0].tolist() == [True, True, False]

    def test_released_punctuation_goes_by_the_string(self) -> None:
        pieces = [".", "()", ")(", "%", "|", "…", "-", "A", ""]
        assert released_punctuation(pieces).tolist() == [
            *(True, True, False, True, False, False, True, False, False)
        ]


class TestGate:
    # 0 <- 1 <- 2 -> 4 -> 3, and 5 <- 6 -> 7 with 6 the root above 2
    TREE = (1, 2, 6, 4, 2, 6, -1, 6)

    @pytest.mark.parametrize(
        ("marks", "keep", "left"),
        [
            ([0], 0, [0]),
            ([0, 3], 0, [0, 1, 2, 3, 4]),
            ([1, 4], 0, [1, 2, 4]),
            ([1, 4], 1, [0, 1, 2, 3, 4]),
            ([1], 1, [0, 1]),
            ([1, 5], 0, [1, 2, 5, 6]),
            ([1, 5], 1, [0, 1, 2, 4, 5, 6, 7]),
            ([1, 5], 2, [0, 1, 2, 3, 4, 5, 6, 7]),
            ([1], -1, [0, 1, 2, 3, 4, 5, 6, 7]),
            ([], 0, [0, 1, 2, 3, 4, 5, 6, 7]),
        ],
    )
    def test_what_is_left_around_a_pair(self, marks: list[int], keep: int, left: list[int]) -> None:
        flags = [node in marks for node in range(8)]
        pruned = pruned_distance(self.TREE, marks=flags, keep=keep)
        far = pruned == 255
        assert [node for node in range(8) if (~far[node]).sum() > 1 or left == [node]] == left
        inside = np.ix_(left, left)
        np.testing.assert_array_equal(pruned[inside], tree_distance(self.TREE)[inside])
        assert (np.diag(pruned) == 0).all()

    @settings(max_examples=60)
    @given(data=st.data(), keep=st.integers(-1, 3))
    def test_any_forest_equals_its_twin(
        self, data: st.DataObject, keep: int, forests: Forests
    ) -> None:
        parents, source = data.draw(shown_forests(forests))
        size = len(parents)
        marks = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        fast = pruned_distance(parents, source=source, marks=marks, keep=keep)
        assert fast.tolist() == filled(Twin(parents, source).pruned(marks, keep), fast)

    def test_the_diagonal_is_one_as_published_and_nought_as_released(self) -> None:
        published, released = (
            distance_weights(tree_distance(DOG), 2, variant)
            for variant in ("as_published", "as_released")
        )
        assert published[0].tolist() == [1, 1, 0.5, 0, 0]
        assert released[0].tolist() == [0, 1, 0.5, 0, 0]
        np.testing.assert_array_equal(published - released, np.eye(5))

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_weights_of_a_batch(self, dtype: type) -> None:
        distance = np.array([[[0, 3], [4, 0]], [[0, np.iinfo(dtype).max], [1, 0]]], dtype)
        weights = distance_weights(distance, 3)
        third = float(np.float32(1) / np.float32(3))
        assert weights.tolist() == [[[1, third], [0, 1]], [[1, 0], [1, 1]]]
        assert weights.dtype == np.float32

    def test_weights_are_those_of_the_pruned_tree(self) -> None:
        marks = [1, 1, 0, 0, 0]
        weights = gate_weights(DOG, marks=marks, keep=0)
        assert weights[:2, :2].tolist() == [[1, 1], [1, 1]]
        assert weights[2:].tolist() == np.eye(5)[2:].tolist()
        np.testing.assert_array_equal(
            gate_weights(DOG, marks=marks), distance_weights(tree_distance(DOG), 2)
        )

    @pytest.mark.parametrize("threshold", [0, -1, 255])
    def test_thresholds_that_cannot_be(self, threshold: int) -> None:
        with pytest.raises(SpecError, match=f"threshold is {threshold}; it must lie"):
            distance_weights(tree_distance(DOG), threshold)


class TestSgnet:
    def test_leaves_do_not_see_themselves_as_released(self) -> None:
        published, released = sgnet_mask(DOG), sgnet_mask(DOG, variant="as_released")
        leaves = [0, 3]
        assert np.diag(published).all()
        assert np.flatnonzero(~np.diag(released)).tolist() == leaves
        apart = published != released
        assert np.argwhere(apart).tolist() == [[0, 0], [3, 3]]

    def test_gaps_of_a_span_see_its_head_as_released(self) -> None:
        published, released = sgnet_mask(CROSSING), sgnet_mask(CROSSING, variant="as_released")
        assert not published[[1, 2], 3].any()
        assert released[[0, 1, 2, 3, 4], 3].all()
        assert not subtrees(CROSSING).is_projective[3]

    def test_nobody_sees_later_pieces_as_released(self) -> None:
        # play ##ing outside; the word of two pieces sees its first, the later piece only that.
        mask = sgnet_mask([-1, 0, 0], variant="as_released")
        assert mask.tolist() == [[True, False, False]] * 3

    def test_special_tokens(self) -> None:
        tree, special = [-1, 0, 1, 0], [True, False, False, True]
        published = sgnet_mask(tree, special=special)
        assert published.tolist() == [
            [True, False, False, False],
            [False, True, False, False],
            [False, True, True, False],
            [False, False, False, True],
        ]
        released = sgnet_mask(tree, special=special, variant="as_released")
        assert released.tolist() == [[False] * 4, *[[False, True, False, False]] * 2, [False] * 4]

    @settings(max_examples=60)
    @given(data=st.data())
    def test_any_forest_equals_its_twin(self, data: st.DataObject, forests: Forests) -> None:
        parents, source = data.draw(shown_forests(forests))
        special = [parent == -2 for parent in parents]
        twin = Twin(parents, source)
        published = sgnet_mask(parents, source=source, special=special)
        released = sgnet_mask(parents, source=source, special=special, variant="as_released")
        assert released.tolist() == twin.released_sgnet(special)
        assert published.tolist() == twin.published_sgnet(special)


class TestSubtrees:
    def test_a_sentence_worked_by_hand(self) -> None:
        found = subtrees(DOG)
        assert found.height.tolist() == [0, 1, 2, 0, 1]
        assert found.size.tolist() == [1, 2, 5, 1, 2]
        assert found.first.tolist() == [0, 0, 0, 3, 3]
        assert found.last.tolist() == [0, 1, 4, 3, 4]
        assert found.is_projective.all()

    @settings(max_examples=60)
    @given(data=st.data())
    def test_any_forest_equals_its_twin(self, data: st.DataObject, forests: Forests) -> None:
        parents, source = data.draw(shown_forests(forests))
        twin = Twin(parents, source)
        found = subtrees(parents, source=source)
        columns = (found.height, found.size, found.first, found.last, found.is_projective)
        got = list(zip(*(column.tolist() for column in columns), strict=True))
        assert got == [twin.subtree(node) for node in range(len(parents))]

    @settings(max_examples=60)
    @given(data=st.data())
    def test_spans_after_truncation_are_those_of_what_is_kept(
        self, data: st.DataObject, forests: Forests
    ) -> None:
        parents = data.draw(forests)
        size = len(parents)
        kept = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
        column = np.where(kept, np.cumsum(kept) - 1, -1)
        found = subtrees(parents, column=column)
        whole = subtrees(parents)
        for node in range(size):
            left = [int(column[other]) for other in Twin(parents).below(node) if kept[other]]
            assert found.first[node] == min(left, default=-1)
            assert found.last[node] == max(left, default=-1)
        np.testing.assert_array_equal(found.size, whole.size)
        np.testing.assert_array_equal(found.is_projective, whole.is_projective)


class TestLca:
    @settings(max_examples=60)
    @given(data=st.data())
    def test_any_forest_equals_its_twin(self, data: st.DataObject, forests: Forests) -> None:
        parents, source = data.draw(shown_forests(forests))
        twin = Twin(parents, source)
        slow = twin.square(lambda one, other: twin.lca(source[one], source[other]))
        assert lowest_common_ancestor(parents, source=source).tolist() == slow
        depth = [*tree_depth(parents).tolist(), -1]
        assert lca_depth(parents, source=source).tolist() == [[depth[x] for x in r] for r in slow]

    @settings(max_examples=60)
    @given(data=st.data())
    def test_deleted_ancestors_are_replaced_by_kept_ones(
        self, data: st.DataObject, forests: Forests
    ) -> None:
        parents = data.draw(forests)
        size = len(parents)
        kept = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
        column = np.where(kept, np.cumsum(kept) - 1, -1).tolist()
        twin = Twin(parents)

        def shown(one: int, other: int) -> int:
            meeting = twin.lca(one, other)
            above = twin.walk(meeting) if meeting >= 0 else []
            return next((column[node] for node in above if kept[node]), -1)

        assert lowest_common_ancestor(parents, column=column).tolist() == twin.square(shown)

    @settings(max_examples=60)
    @given(data=st.data())
    def test_pairs_and_sets_agree_with_the_matrix(
        self, data: st.DataObject, forests: Forests
    ) -> None:
        parents = data.draw(forests.filter(len))
        nodes = st.integers(0, len(parents) - 1)
        left = data.draw(st.lists(nodes, max_size=6))
        right = data.draw(st.lists(nodes, min_size=len(left), max_size=len(left)))
        matrix = lowest_common_ancestor(parents)
        assert common_ancestors(parents, left, right).tolist() == matrix[left, right].tolist()
        members = data.draw(st.lists(nodes, min_size=1, max_size=4))
        walks = [Twin(parents).walk(member) for member in members]
        shared = [node for node in walks[0] if all(node in walk for walk in walks)]
        assert common_ancestor(parents, members) == (shared or [-1])[0]

    def test_what_cannot_be_asked(self) -> None:
        with pytest.raises(InputError, match="node 5 came; the tree has nodes 0 to 4"):
            common_ancestor(DOG, [1, 5])
        with pytest.raises(InputError, match="no node came"):
            common_ancestor(DOG, [])
        with pytest.raises(InputError, match="2 left nodes came with 1 right"):
            common_ancestors(DOG, [0, 1], [2])


def test_real_trees_equal_networkx(treebank_trees: list[list[int]]) -> None:
    for parents in treebank_trees[::10]:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(parents)))
        graph.add_edges_from((parent, node) for node, parent in enumerate(parents) if parent >= 0)
        common = lowest_common_ancestor(parents)
        pairs = [(one, other) for one in graph for other in range(one)]
        for (one, other), node in nx.tree_all_pairs_lowest_common_ancestor(graph, pairs=pairs):
            assert common[one, other] == common[other, one] == node
        found = subtrees(parents)
        for node in graph:
            below = nx.descendants(graph, node) | {node}
            assert (found.size[node], found.first[node], found.last[node]) == (
                *(len(below), min(below), max(below)),
            )


def test_spans_of_yields_have_gaps_in_26_sentences_of_ewt(data_dir: Path) -> None:
    """As many as SG-Net's own conversion was seen to over-approximate."""
    (file,) = (data_dir / "treebanks").glob("*EWT/*-ud-test.conllu")
    trees = [sentence.tree.parents for sentence in read_conllu(file)]
    gaps = [tree for tree in trees if not subtrees(tree).is_projective.all()]
    assert (len(gaps), len(trees)) == (26, 2077)
    for tree in gaps:
        released = sgnet_mask(tree, variant="as_released") | np.eye(len(tree), dtype=bool)
        assert (released > sgnet_mask(tree)).any()


@settings(max_examples=60)
@given(data=st.data())
def test_pieces_of_a_broadcast_word_show_its_first(data: st.DataObject, texts: Texts) -> None:
    features = data.draw(texts).features()
    parents, source = broadcast(features.head, features.word_ids)
    for name in MATRICES:
        if "source" not in MATRICES.columns(name):
            continue
        matrix = MATRICES[name](parents, source=source)
        shown = matrix[np.ix_(*(source,) * matrix.ndim)]
        np.testing.assert_array_equal(matrix, shown, err_msg=name)


@pytest.mark.parametrize(
    "make",
    [windowed_distance, sla_mask, pruned_distance, gate_weights, sgnet_mask, subtrees],
)
def test_columns_and_heads_are_checked(make: Any) -> None:
    with pytest.raises(CycleError):
        make([1, 0])
    with pytest.raises(InputError, match="source"):
        make([-1, 0], source=[1, 1])
    for column in {"special", "marks"} & set(make.__kwdefaults__):
        with pytest.raises(InputError, match=rf"{column} has shape \(1,\); give one value"):
            make([-1, 0], **{column: [True]})


@pytest.mark.parametrize("make", [windowed_distance, sla_mask, gate_weights, sgnet_mask])
def test_variants_are_two(make: Any) -> None:
    with pytest.raises(SpecError, match="variant is 'released'; it is one of as_published"):
        make([-1, 0], variant="released")


def test_each_pass_is_compiled_for_one_kind_of_array() -> None:
    read_only = np.array([-1, 0, 1], np.int32)
    read_only.flags.writeable = False
    for heads in (read_only, read_only.astype(np.int64), read_only.tolist()):
        subtrees(heads)
        lowest_common_ancestor(heads)
        pruned_distance(heads, marks=np.array([0, 1, 1], np.int64))
    for name in ("fold_subtrees", "fill_common", "off_path", "fill_spans"):
        assert len(getattr(relations, name).signatures) <= 1, name
