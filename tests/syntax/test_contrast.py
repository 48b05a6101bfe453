"""Contrastive samples: every rule of both ways, checked sample by sample, and determinism."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.contrast import PhraseSampler, TreeSampler, read_sampler
from syntax.errors import SpecError, UnknownNameError
from tests.syntax.contrast_cases import bare
from tests.syntax.relation_twins import Twin

Forests = st.SearchStrategy[list[int]]

EVERY = PhraseSampler(probability=1.0, max_samples=1000, negatives=100)


def phrases(samples: dict[str, Any]) -> list[tuple[int, int, int, list[int]]]:
    """Head, anchor, positive and negatives of the samples of one tree, in nodes of the tree."""
    return [
        (*(int(x) - 1 for x in one), [int(x) - 1 for x in negatives if x >= 0])
        for *one, negatives in zip(
            *(samples[f"phrase_{name}"] for name in ("head", "anchor", "positive", "negatives")),
            strict=True,
        )
    ]


def trees(samples: dict[str, Any]) -> list[tuple[int, list[int], list[list[int]]]]:
    """Samples of one tree, in nodes of the tree."""
    return [
        (
            int(root) - 1,
            [int(x) - 1 for x in positive if x >= 0],
            [[int(x) - 1 for x in tree if x >= 0] for tree in negatives if tree[0] >= 0],
        )
        for root, positive, negatives in zip(
            samples["tree_root"], samples["tree_positive"], samples["tree_negatives"], strict=True
        )
    ]


class TestPhrasesOfSynclm:
    @settings(max_examples=40)
    @given(data=st.data(), seed=st.integers(0, 1000))
    def test_every_sample_keeps_the_rules(self, data, seed, forests) -> None:
        parents = [max(parent, -1) for parent in data.draw(forests.filter(len))]
        twin = Twin(parents)
        seen = Counter()
        for sample in phrases(EVERY.sample(bare(parents), ["a"], seed, 0)):
            self._check(twin, *sample)
            seen[sample[0], sample[0] == sample[1]] += 1
        assert set(seen.values()) <= {1}
        for head in range(len(parents)):
            _, size, first, last, _ = twin.subtree(head)
            near = set(range(max(first, head - 3), min(last, head + 3) + 1)) - {head}
            expected = bool(size > 1 and near and self._outside(twin, head, head))
            assert ((head, True) in seen) == expected

    @staticmethod
    def _outside(twin: Any, head: int, anchor: int) -> list[int]:
        _, _, first, last, _ = twin.subtree(head)
        return [
            node
            for node in range(twin.size)
            if not first <= node <= last
            and node != twin.parents[head]
            and first - 10 <= node <= last + 10
            and (anchor == head or (node - anchor) * (anchor - head) > 0)
        ]

    def _check(
        self, twin: Any, head: int, anchor: int, positive: int, negatives: list[int]
    ) -> None:
        _, size, first, last, _ = twin.subtree(head)
        assert size > 1
        assert head in (anchor, positive)
        assert first <= min(anchor, positive) < max(anchor, positive) <= last
        assert abs(anchor - positive) <= 3
        assert sorted(negatives) == self._outside(twin, head, anchor) != []

    @settings(max_examples=40)
    @given(data=st.data(), seed=st.integers(0, 1000), negatives=st.integers(1, 4))
    def test_the_exchanged_sample_keeps_negatives_of_the_first(
        self, data: st.DataObject, seed: int, negatives: int, forests: Forests
    ) -> None:
        parents = [max(parent, -1) for parent in data.draw(forests.filter(len))]
        sampler = PhraseSampler(probability=1.0, max_samples=1000, negatives=negatives)
        twin, first = Twin(parents), {}
        for head, anchor, positive, drawn in phrases(sampler.sample(bare(parents), ["a"], seed, 0)):
            if head == anchor:
                first[head] = positive, drawn
                near = self._outside(twin, head, head)
                assert set(drawn) <= set(near)
                # The head's parent may be drawn, and then one is missing.
                assert min(negatives, len(near)) - 1 <= len(drawn) <= negatives
            else:
                kept, beyond = first[head], self._outside(twin, head, anchor)
                assert kept[0] == anchor
                assert drawn == [node for node in kept[1] if node in beyond]

    def test_a_drawn_parent_leaves_one_negative_less(self) -> None:
        # Of "dog" (1), whose parent is 2: one of 2 to 5 is drawn, and a drawn 2 is left out.
        sampler, drawn = PhraseSampler(probability=1.0, negatives=1), Counter()
        for epoch in range(400):
            samples = phrases(sampler.sample(bare([1, 2, -1, 2, 2, 2]), ["a"], 0, epoch))
            drawn.update(tuple(negatives) for _, anchor, _, negatives in samples if anchor == 1)
        assert set(drawn) == {(3,), (4,), (5,)}
        assert 0.68 < sum(drawn.values()) / 400 < 0.82

    def test_a_candidate_is_taken_with_its_probability(self) -> None:
        batch = bare([1, 2, -1, 4, 2])
        sampler = PhraseSampler(probability=0.15)
        taken = Counter()
        for epoch in range(2000):
            taken.update(
                head
                for head, anchor, *_ in phrases(sampler.sample(batch, ["a"], 0, epoch))
                if head == anchor
            )
        # "dog" (1) and "cat" (4) have dependents and pieces outside; the root's span is all.
        assert 0.12 < taken[1] / 2000 < 0.18
        assert 0.12 < taken[4] / 2000 < 0.18

    def test_the_positive_is_any_piece_near_with_equal_chance(self) -> None:
        # The head stands at 4 amid its dependents; 0 is out of the window.
        batch = bare([4, 4, 4, 4, 8, 4, 4, 8, -1])
        found = Counter()
        for epoch in range(1000):
            for _, anchor, positive, _ in phrases(EVERY.sample(batch, ["a"], 0, epoch)):
                if anchor == 4 and positive < 7:
                    found[positive] += 1
        assert set(found) == {1, 2, 3, 5, 6}
        assert all(abs(count / 1000 - 0.2) < 0.04 for count in found.values())


class TestPhrasesOfLrSib:
    @pytest.mark.slow
    @settings(max_examples=40)
    @given(data=st.data(), seed=st.integers(0, 1000), height=st.integers(1, 3))
    def test_every_sample_keeps_the_rules(self, data, seed, height, forests) -> None:
        parents = [max(parent, -1) for parent in data.draw(forests.filter(len))]
        sampler = PhraseSampler(way="lr_sib", max_height=height, negatives=100, max_samples=100)
        twin = Twin(parents)
        wanted = Counter(
            frozenset(twin.below(top))
            for top in range(len(parents))
            if 2 <= twin.subtree(top)[1] < len(parents) and twin.subtree(top)[0] <= height
        )
        found = Counter()
        for sample in phrases(sampler.sample(bare(parents), ["a"], seed, 0)):
            head, anchor, positive, negatives = sample
            inside = frozenset(range(len(parents))) - set(negatives)
            assert inside == twin.below(head)
            assert {anchor, positive} <= inside
            assert anchor != positive
            assert len(set(negatives)) == len(negatives)
            found[inside] += 1
        assert found == wanted

    def test_negatives_are_few_when_few_are_wanted(self) -> None:
        sampler = PhraseSampler(way="lr_sib", negatives=2)
        (sample,) = phrases(sampler.sample(bare([1, 2, -1, 2, 2, 2]), ["a"], 0, 0))
        assert sample[0] == 1
        assert set(sample[1:3]) == {0, 1}
        assert len(sample[3]) == 2


class TestTreesOfSynclm:
    @settings(max_examples=40)
    @given(data=st.data(), seed=st.integers(0, 1000), negatives=st.integers(1, 30))
    def test_every_sample_keeps_the_rules(self, data, seed, negatives, forests) -> None:
        parents = [max(parent, -1) for parent in data.draw(forests.filter(len))]
        sampler = TreeSampler(max_samples=100, negatives=negatives)
        twin, found = Twin(parents), set()
        for root, positive, windows in trees(sampler.sample(bare(parents), ["a"], seed, 0)):
            _, _, first, last, _ = twin.subtree(root)
            assert positive == list(range(first, last + 1))
            possible = slid_windows(root, first, last, len(parents))
            assert len(windows) == min(negatives, len(possible))
            assert all(window in possible for window in windows)
            assert len({tuple(window) for window in windows}) == len(windows)
            assert root not in found
            found.add(root)
        for node in range(len(parents)):
            _, size, first, last, _ = twin.subtree(node)
            expected = parents[node] >= 0 and size > 1 and last - first < 10
            windows = slid_windows(node, first, last, len(parents))
            assert (node in found) == bool(expected and windows)


def slid_windows(root: int, first: int, last: int, count: int) -> list[list[int]]:
    """What the release takes for negatives of a span: its end is moved, then it is slid.

    Each of the spans that end where this one does, one piece later, or (of more than three pieces)
    one earlier is slid to either side, a piece at a time, while it contains the root and lies in
    the text.
    """
    found = []
    for end in (last, last + 1, last - 1)[: 3 if last - first + 1 > 3 else 2]:
        for step in (-1, 1):
            at = step
            while first + at <= root <= end + at and first + at >= 0 and end + at < count:
                found.append(list(range(first + at, end + at + 1)))
                at += step
    return found


class TestTreesOfLrSib:
    @pytest.mark.slow
    @settings(max_examples=40)
    @given(
        data=st.data(),
        seed=st.integers(0, 1000),
        negatives=st.integers(2, 12),
        exchanges=st.integers(1, 3),
    )
    def test_every_sample_keeps_the_rules(self, data, seed, negatives, exchanges, forests) -> None:
        parents = [max(parent, -1) for parent in data.draw(forests.filter(len))]
        sampler = TreeSampler("lr_sib", negatives, max_samples=100, exchanges=exchanges)
        twin = Twin(parents)
        roots = []
        for root, positive, changed in trees(sampler.sample(bare(parents), ["a"], seed, 0)):
            below = twin.below(root)
            assert set(positive) == below
            assert 2 <= len(below) <= 10
            assert 2 <= len(changed) <= negatives
            assert len({tuple(tree) for tree in changed}) == len(changed)
            for tree in changed:
                self._check(twin, root, below, set(tree), exchanges)
                assert tree == sorted(tree)
            roots.append(root)
        assert len(set(roots)) == len(roots)

    @staticmethod
    def _check(twin: Any, root: int, below: set[int], tree: set[int], exchanges: int) -> None:
        gone, new = below - tree, tree - below
        assert root in tree
        assert gone
        assert new
        assert abs(len(new) - len(gone)) <= 1
        # What went and what came are whole subtrees, at most so many each.
        tops = [node for node in gone if twin.parents[node] not in gone]
        assert all(twin.below(node) <= gone for node in gone)
        assert len(tops) <= exchanges
        came = [node for node in new if twin.parents[node] not in new]
        assert all(twin.below(node) <= new for node in new)
        assert len(came) <= exchanges
        beside = {node + step for node in below for step in (-1, 1)} - below
        assert set(came) <= beside - set(twin.walk(root))

    @pytest.mark.slow
    def test_parts_are_exchanged_for_neighbours(self) -> None:
        # 1 and 2 hang from 3, between 0 and 4, which hang from 5.
        samples = trees(TreeSampler(way="lr_sib").sample(bare([5, 3, 3, 5, 5, -1]), ["a"], 0, 0))
        assert [(root, positive) for root, positive, _ in samples] == [(3, [1, 2, 3])]
        assert {tuple(tree) for tree in samples[0][2]} == {
            *((0, 2, 3), (0, 1, 3), (2, 3, 4), (1, 3, 4), (0, 3, 4))
        }
        one = TreeSampler(way="lr_sib", exchanges=1)
        samples = trees(one.sample(bare([5, 3, 3, 5, 5, -1]), ["a"], 0, 0))
        assert {tuple(tree) for tree in samples[0][2]} == {
            *((0, 2, 3), (0, 1, 3), (2, 3, 4), (1, 3, 4))
        }


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (PhraseSampler, {"way": "synclmm"}, "way is 'synclmm'; it is one of synclm, lr_sib"),
        (PhraseSampler, {"probability": 0.0}, "probability is 0.0"),
        (PhraseSampler, {"negatives": 0}, "negatives is 0; it must be at least 1"),
        (PhraseSampler, {"min_size": 1}, "min_size is 1; it must be at least 2"),
        (TreeSampler, {"way": "SynCLM"}, "way is 'SynCLM'"),
        (TreeSampler, {"max_size": 1}, "max_size is 1; it must be at least 2"),
        (TreeSampler, {"way": "lr_sib", "negatives": 1}, "negatives is 1; lr_sib needs 2"),
        (TreeSampler, {"max_samples": 0}, "max_samples is 0"),
    ],
)
def test_options_out_of_range_are_refused(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        kind(**options)


def test_a_sampler_is_read_from_its_name_and_settings() -> None:
    assert read_sampler("phrase") == PhraseSampler()
    assert read_sampler("tree.v1( negatives=3 , way=lr_sib )") == TreeSampler(
        way="lr_sib", negatives=3
    )
    assert read_sampler("phrase(probability=0.5)").probability == 0.5


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("phrases", UnknownNameError, "Did you mean 'phrase.v1'"),
        ("phrase(negative=3)", UnknownNameError, "Did you mean 'negatives'"),
        ("phrase(negatives)", SpecError, "the setting 'negatives' of phrase.v1 has no '='"),
        ("phrase(negatives=many)", SpecError, "negatives is 'many'; it is of type int"),
        ("phrase(negatives=0)", SpecError, "negatives is 0; it must be at least 1"),
        ("phrase(way=theirs)", SpecError, "way is 'theirs'; it is one of synclm, lr_sib"),
        ("phrase(", SpecError, r"'phrase\(' is not a sampler"),
    ],
)
def test_a_sampler_that_does_not_exist_is_refused(text, error, message) -> None:
    with pytest.raises(error, match=message):
        read_sampler(text)
