"""Contrastive samples: every rule of both ways, checked sample by sample, and determinism."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.assembly import AssemblySpec, FlatExamples, SpecialTokens, assemble_batch
from syntax.contrast import PhraseSampler, TreeSampler
from syntax.contrast.draws import below, choose, draw, happens
from syntax.contrast.texts import texts_of
from syntax.errors import InputError, SpecError
from syntax.mixing import splitmix, stream_seed
from tests.syntax.relation_twins import Twin

Texts = st.SearchStrategy[Any]
Forests = st.SearchStrategy[list[int]]

BERT = SpecialTokens(prefix=(101,), separator=(102,), suffix=(102,), pad_id=0, vocab_size=200)
# Three phrases in a row hang from the verb at the end, the second with one of its own.
TREE = [2, 2, 11, 5, 5, 8, 7, 8, 11, 10, 11, -1]

EVERY = PhraseSampler(probability=1.0, max_samples=1000, negatives=100)


def bare(*trees: list[int]) -> dict[str, Any]:
    """A batch with one segment per row and a special token before it; every piece a word."""
    width = max(map(len, trees)) + 1
    batch = {name: np.full((len(trees), width), -1) for name in ("parents", "word_ids")}
    batch["segment_ids"] = batch["word_ids"].copy()
    for row, tree in enumerate(trees):
        inside = slice(1, len(tree) + 1)
        batch["parents"][row, inside] = [parent + 1 if parent >= 0 else 0 for parent in tree]
        batch["word_ids"][row, inside] = np.arange(len(tree))
        batch["segment_ids"][row, inside] = 0
    return batch


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
    def test_every_sample_keeps_the_rules(
        self, data: st.DataObject, seed: int, forests: Forests
    ) -> None:
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
            and abs(node - anchor) <= 10
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

    def test_the_reversed_sample_looks_away_from_the_head(self) -> None:
        # "a big dog barks": the positive of dog (2) lies to its left, where nothing is beyond.
        samples = phrases(EVERY.sample(bare([2, 2, 3, -1, 3]), ["a"], 0, 0))
        assert [(anchor, negatives) for _, anchor, _, negatives in samples] == [(2, [4])]


class TestPhrasesOfLrSib:
    @settings(max_examples=40)
    @given(data=st.data(), seed=st.integers(0, 1000), height=st.integers(1, 3))
    def test_every_sample_keeps_the_rules(
        self, data: st.DataObject, seed: int, height: int, forests: Forests
    ) -> None:
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
    def test_every_sample_keeps_the_rules(
        self, data: st.DataObject, seed: int, negatives: int, forests: Forests
    ) -> None:
        parents = [max(parent, -1) for parent in data.draw(forests.filter(len))]
        sampler = TreeSampler(max_samples=100, negatives=negatives)
        twin, found = Twin(parents), set()
        for root, positive, windows in trees(sampler.sample(bare(parents), ["a"], seed, 0)):
            _, _, first, last, _ = twin.subtree(root)
            assert positive == list(range(first, last + 1))
            lengths = {len(positive), len(positive) + 1}
            lengths |= {len(positive) - 1} if len(positive) > 3 else set()
            possible = [
                list(range(start, start + length))
                for length in lengths
                for start in range(len(parents) - length + 1)
                if start <= root < start + length and (start, length) != (first, len(positive))
            ]
            assert len(windows) == min(negatives, len(possible))
            assert all(window in possible for window in windows)
            assert len({tuple(window) for window in windows}) == len(windows)
            assert root not in found
            found.add(root)
        for node in range(len(parents)):
            _, size, first, last, _ = twin.subtree(node)
            expected = parents[node] >= 0 and size > 1 and last - first < 10
            # A span that is the whole text has no other windows but shorter ones.
            length = last - first + 1
            assert (node in found) == (expected and (length < len(parents) or length > 3))


class TestTreesOfLrSib:
    @pytest.mark.slow
    @settings(max_examples=40)
    @given(data=st.data(), seed=st.integers(0, 1000), negatives=st.integers(2, 12))
    def test_every_sample_keeps_the_rules(
        self, data: st.DataObject, seed: int, negatives: int, forests: Forests
    ) -> None:
        parents = [max(parent, -1) for parent in data.draw(forests.filter(len))]
        sampler = TreeSampler(way="lr_sib", max_samples=100, negatives=negatives)
        twin = Twin(parents)
        roots = []
        for root, positive, changed in trees(sampler.sample(bare(parents), ["a"], seed, 0)):
            below = twin.below(root)
            assert set(positive) == below
            assert 2 <= len(below) <= 10
            assert 2 <= len(changed) <= negatives
            assert len({tuple(tree) for tree in changed}) == len(changed)
            for tree in changed:
                self._check(twin, root, below, set(tree))
                assert tree == sorted(tree)
            roots.append(root)
        assert len(set(roots)) == len(roots)

    @staticmethod
    def _check(twin: Any, root: int, below: set[int], tree: set[int]) -> None:
        gone, new = below - tree, tree - below
        assert root in tree
        assert gone
        assert new
        assert abs(len(new) - len(gone)) <= 1
        # What went and what came are whole subtrees, at most three each.
        tops = [node for node in gone if twin.parents[node] not in gone]
        assert all(twin.below(node) <= gone for node in gone)
        assert len(tops) <= 3
        came = [node for node in new if twin.parents[node] not in new]
        assert all(twin.below(node) <= new for node in new)
        assert len(came) <= 3
        beside = {node + step for node in below for step in (-1, 1)} - below
        assert set(came) <= beside - set(twin.walk(root))

    @pytest.mark.slow
    def test_parts_are_exchanged_for_neighbours(self) -> None:
        # 1 and 2 hang from 3, between 0 and 4, which hang from 5.
        samples = trees(TreeSampler(way="lr_sib").sample(bare([5, 3, 3, 5, 5, -1]), ["a"], 0, 0))
        assert [(root, positive) for root, positive, _ in samples] == [(3, [1, 2, 3])]
        assert {tuple(tree) for tree in samples[0][2]} == {
            *((0, 2, 3), (0, 1, 3), (2, 3, 4), (1, 3, 4), (0, 3, 4)),
        }


@pytest.mark.parametrize("way", ["synclm", "lr_sib"])
@pytest.mark.parametrize("kind", [PhraseSampler, TreeSampler])
class TestBatches:
    @settings(max_examples=40)
    @given(data=st.data(), limit=st.sampled_from([None, 9, 14]))
    def test_samples_are_of_words_of_one_segment_and_no_company_matters(
        self, kind: Any, way: Any, data: st.DataObject, limit: int | None, texts: Texts
    ) -> None:
        examples = [
            [text.features() for text in data.draw(st.lists(texts, min_size=1, max_size=2))]
            for _ in range(data.draw(st.integers(1, 3)))
        ]
        keys = [f"example {number}" for number in range(len(examples))]
        flat = FlatExamples.from_segments(examples)
        spec = AssemblySpec(max_length=limit, matrices=())
        batch = assemble_batch(flat, BERT, spec)
        sampler = kind(way=way)
        samples = sampler.sample(batch, keys, 3, 1)
        (offsets,) = (value for name, value in samples.items() if name.endswith("offsets"))
        assert offsets.shape == (len(examples) + 1,)
        for number in range(len(examples)):
            mine = slice(offsets[number], offsets[number + 1])
            assert mine.stop - mine.start <= sampler.max_samples
            self._check(samples, mine, batch, number)
            alone = assemble_batch(flat.take([number]), BERT, spec)
            again = sampler.sample(alone, keys[number : number + 1], 3, 1)
            for name in samples.keys() - {"phrase_offsets", "tree_offsets"}:
                assert len(samples[name]) == offsets[-1]
                np.testing.assert_array_equal(samples[name][mine], again[name], err_msg=name)

    @staticmethod
    def _check(samples: Any, mine: slice, batch: Any, number: int) -> None:
        for row in range(mine.start, mine.stop):
            values = [
                np.ravel(array[row])
                for name, array in samples.items()
                if not name.endswith("offsets")
            ]
            columns = np.concatenate(values)
            columns = columns[columns >= 0]
            assert (batch["word_ids"][number, columns] >= 0).all()
            assert len(set(batch["segment_ids"][number, columns])) == 1

    def test_seed_epoch_and_key_choose_the_draws(self, kind: Any, way: Any) -> None:
        batch = bare(TREE)
        sampler = kind(way=way)

        def drawn(seed: int, epoch: int, key: str) -> list[Any]:
            return [x.tolist() for x in sampler.sample(batch, [key], seed, epoch).values()]

        assert drawn(0, 0, "a") == drawn(0, 0, "a")
        several = {str(drawn(seed, 0, "a")) for seed in range(20)}
        assert len(several) > 10
        assert len({str(drawn(0, epoch, "a")) for epoch in range(20)}) > 10
        assert len({str(drawn(0, 0, key)) for key in "abcdefghijklmnopqrst"}) > 10

    def test_no_more_than_the_maximum(self, kind: Any, way: Any) -> None:
        batch = bare(TREE, [-1, 0, 1, 2, 3, 4])
        extra = {"probability": 1.0} if kind is PhraseSampler else {}
        samples = kind(way=way, max_samples=2, **extra).sample(batch, ["a", "b"], 0, 0)
        (offsets,) = (value for name, value in samples.items() if name.endswith("offsets"))
        assert np.diff(offsets).tolist()[0] == 2
        assert np.diff(offsets).max() == 2

    def test_what_cannot_be_sampled(self, kind: Any, way: Any) -> None:
        batch = bare([-1, 0])
        with pytest.raises(InputError, match="2 keys came for 1 examples"):
            kind(way=way).sample(batch, ["a", "b"], 0, 0)
        with pytest.raises(InputError, match="the batch has no word_ids"):
            kind(way=way).sample({"parents": batch["parents"]}, ["a"], 0, 0)
        empty = assemble_batch(FlatExamples.from_segments([]), BERT, AssemblySpec())
        assert all(len(x) <= 1 for x in kind(way=way).sample(empty, [], 0, 0).values())


LONG_AGO: dict[str, Any] = {
    "phrase_anchor": [3, 9, 7, 6, 4, 11, 10, 8, 7],
    "phrase_negatives": [
        [8, 4, 11],
        [10, 2, 1],
        [1, 2, 3],
        [2, 12, 3],
        [3, 2, 1],
        [5, 3, 4],
        [5, 7, 4],
        [3, 6, 11],
        [4, 2, 3],
    ],
    "tree_root": [3, 6, 9],
}


def test_a_draw_of_long_ago() -> None:
    """What was drawn once is drawn for ever."""
    batch = bare(TREE)
    samples = PhraseSampler(probability=1.0, negatives=3).sample(batch, ["xnli-7"], 5, 2)
    assert samples["phrase_anchor"].tolist() == LONG_AGO["phrase_anchor"]
    assert samples["phrase_negatives"].tolist() == LONG_AGO["phrase_negatives"]
    grown = TreeSampler(way="lr_sib", negatives=2).sample(batch, ["xnli-7"], 5, 2)
    assert grown["tree_root"].tolist() == LONG_AGO["tree_root"]


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
def test_samplers_that_cannot_be(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        kind(**options)


class TestDraws:
    @given(st.integers(0, 2**64 - 1))
    def test_numbers_are_those_of_splitmix(self, seed: int) -> None:
        state = np.array([seed], np.uint64)
        assert [int(draw(state)) for _ in range(5)] == splitmix(5, seed).tolist()

    def test_numbers_are_those_of_the_definition(self) -> None:
        # The first three of the authors' C program, from seed 1234567.
        expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
        assert splitmix(3, 1234567).tolist() == expected

    def test_choices_are_uniform_and_without_repetition(self) -> None:
        state = np.array([stream_seed("test")], np.uint64)
        items = np.arange(6, dtype=np.int32)
        pairs = Counter()
        for _ in range(3000):
            assert choose(state, items, 6, 2) == 2
            pairs[tuple(items[:2].tolist())] += 1
        assert len(pairs) == 30
        assert all(60 < count < 145 for count in pairs.values())
        assert sorted(items.tolist()) == [0, 1, 2, 3, 4, 5]
        assert choose(state, items, 3, 9) == 3

    def test_numbers_below_a_bound_and_chances(self) -> None:
        state = np.array([0], np.uint64)
        numbers = Counter(below(state, 3) for _ in range(3000))
        assert set(numbers) == {0, 1, 2}
        assert all(abs(count - 1000) < 100 for count in numbers.values())
        assert abs(sum(happens(state, 0.3) for _ in range(3000)) - 900) < 100
        assert not happens(state, 0.0)
        assert happens(state, 1.0)


def test_texts_leave_out_what_belongs_to_no_word() -> None:
    batch = {
        "parents": np.array([[-1, 3, -1, 0, 0, 7, 0, 0, -1], [-1, 0, 1, 0, -1, -1, -1, -1, -1]]),
        "word_ids": np.array(
            [[-1, 0, -1, 1, -1, 0, -1, 1, -1], [-1, 0, 1, -1, -1, -1, -1, -1, -1]]
        ),
        "segment_ids": np.array(
            [[-1, 0, 0, 0, -1, 1, -1, 1, -1], [-1, 0, 0, -1, -1, -1, -1, -1, -1]]
        ),
    }
    texts = texts_of(batch)
    assert texts.column.tolist() == [1, 3, 5, 7, 1, 2]
    assert texts.parent.tolist() == [1, -1, 1, -1, -1, 0]
    assert texts.offsets.tolist() == [0, 2, 4, 6]
    assert texts.example_offsets.tolist() == [0, 2, 3]
    with pytest.raises(InputError, match="they must be equal"):
        texts_of({**batch, "word_ids": batch["word_ids"][:, 1:]})
