"""Subtrees, lowest common ancestors and what all relations share: worked examples, twins."""

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
    gate_weights,
    lca_depth,
    lowest_common_ancestor,
    pruned_distance,
    relations,
    sgnet_mask,
    sla_mask,
    subtrees,
    tree_depth,
    windowed_distance,
)
from syntax.subwords import broadcast
from tests.syntax.relation_twins import DOG, Forests, Twin, shown_forests

Texts = st.SearchStrategy[Any]


class TestSubtrees:
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
    def test_spans_after_truncation_are_those_of_what_is_kept(self, data, forests) -> None:
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
    def test_deleted_ancestors_are_replaced_by_kept_ones(self, data, forests) -> None:
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
    def test_pairs_and_sets_agree_with_the_matrix(self, data, forests) -> None:
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

    def test_nodes_outside_of_the_tree_are_refused(self) -> None:
        with pytest.raises(InputError, match="there is no node 5; the tree has nodes 0 to 4"):
            common_ancestor(DOG, [1, 5])
        with pytest.raises(InputError, match="there are no members"):
            common_ancestor(DOG, [])
        with pytest.raises(InputError, match="there are 2 left nodes and 1 right"):
            common_ancestors(DOG, [0, 1], [2])


@pytest.mark.slow
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
    "make", [windowed_distance, sla_mask, pruned_distance, gate_weights, sgnet_mask, subtrees]
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
def test_unknown_variants_are_refused(make: Any) -> None:
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
