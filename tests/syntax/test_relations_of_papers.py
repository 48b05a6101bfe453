"""Relations that published systems attend by: worked examples, twins, published and released."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.matrices import (
    distance_weights,
    gate_weights,
    pruned_distance,
    released_punctuation,
    sgnet_mask,
    sla_mask,
    subtrees,
    tree_distance,
    windowed_distance,
)
from syntax.trees.ud import upos_id
from tests.syntax.relation_twins import CROSSING, DOG, Forests, Twin, filled, shown_forests


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

    def test_special_tokens_attend_to_all_and_are_attended_to(self) -> None:
        mask = sla_mask(self.TREE, special=self.SPECIAL, threshold=0)
        assert mask[[0, 6]].all()
        assert mask[:, [0, 6]].all()
        # Distance 0 in the window: oneself and one's neighbours.
        assert mask[2].tolist() == [True, True, True, True, False, False, True]

    def test_released_separators_attend_to_nothing(self) -> None:
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
    def test_any_forest_equals_its_twin(self, data, threshold, released, forests) -> None:
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
    def test_pruning_keeps_the_path_of_a_pair_and_nodes_near_it(self, marks, keep, left) -> None:
        flags = [node in marks for node in range(8)]
        pruned = pruned_distance(self.TREE, marks=flags, keep=keep)
        far = pruned == 255
        assert [node for node in range(8) if (~far[node]).sum() > 1 or left == [node]] == left
        inside = np.ix_(left, left)
        np.testing.assert_array_equal(pruned[inside], tree_distance(self.TREE)[inside])
        assert (np.diag(pruned) == 0).all()

    @settings(max_examples=60)
    @given(data=st.data(), keep=st.integers(-1, 3))
    def test_any_forest_equals_its_twin(self, data, keep, forests) -> None:
        parents, source = data.draw(shown_forests(forests))
        size = len(parents)
        marks = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        fast = pruned_distance(parents, source=source, marks=marks, keep=keep)
        assert fast.tolist() == filled(Twin(parents, source).pruned(marks, keep), fast)

    def test_the_diagonal_is_one_as_published_and_zero_as_released(self) -> None:
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


class TestSgnet:
    def test_leaves_do_not_attend_to_themselves_as_released(self) -> None:
        published, released = sgnet_mask(DOG), sgnet_mask(DOG, variant="as_released")
        leaves = [0, 3]
        assert np.diag(published).all()
        assert np.flatnonzero(~np.diag(released)).tolist() == leaves
        apart = published != released
        assert np.argwhere(apart).tolist() == [[0, 0], [3, 3]]

    def test_gaps_of_a_span_attend_to_its_head_as_released(self) -> None:
        published, released = sgnet_mask(CROSSING), sgnet_mask(CROSSING, variant="as_released")
        assert not published[[1, 2], 3].any()
        assert released[[0, 1, 2, 3, 4], 3].all()
        assert not subtrees(CROSSING).is_projective[3]

    def test_no_node_attends_to_later_pieces_as_released(self) -> None:
        # play ##ing outside; the word of two pieces sees its first, the later piece only that.
        mask = sgnet_mask([-1, 0, 0], variant="as_released")
        assert mask.tolist() == [[True, False, False]] * 3

    def test_all_nodes_except_special_tokens_attend_to_themselves_in_convert_span(self) -> None:
        for tree in (DOG, CROSSING, [-1, 0, 0]):
            released = sgnet_mask(tree, variant="as_released")
            diagonal = np.eye(len(tree), dtype=bool)
            assert (sgnet_mask(tree, variant="convert_span") == released | diagonal).all()
        mask = sgnet_mask([-1, 0, 1], special=[True, False, False], variant="convert_span")
        assert mask.tolist() == [[False] * 3, [False, True, False], [False, True, True]]

    def test_sgnet_mask_of_special_tokens(self) -> None:
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
        spans = sgnet_mask(parents, source=source, special=special, variant="convert_span")
        assert spans.tolist() == twin.released_sgnet(special, alone=True)
        assert published.tolist() == twin.published_sgnet(special)
