"""Contrastive samples of whole batches, and the draws behind them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.batches import AssemblySpec, FlatExamples, assemble_batch
from syntax.contrast import PhraseSampler, TreeSampler
from syntax.contrast.draws import next_number
from syntax.contrast.texts import texts_of
from syntax.errors import InputError
from syntax.mixing import splitmix, stream_seed
from tests.syntax.contrast_cases import BERT, TREE, bare

Texts = st.SearchStrategy[Any]

LONG_COMPILATION = pytest.mark.slow
"""numba takes ten seconds for the passes of this sampler."""


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        (PhraseSampler, "synclm"),
        (PhraseSampler, "lr_sib"),
        (TreeSampler, "synclm"),
        pytest.param(TreeSampler, "lr_sib", marks=LONG_COMPILATION),
    ],
)
class TestBatches:
    @settings(max_examples=40)
    @given(data=st.data(), limit=st.sampled_from([None, 9, 14]))
    def test_samples_stay_in_one_segment_and_do_not_depend_on_other_examples(
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

    def test_samples_are_limited_to_the_maximum(self, kind: Any, way: Any) -> None:
        batch = bare(TREE, [-1, 0, 1, 2, 3, 4])
        extra = {"probability": 1.0} if kind is PhraseSampler else {}
        samples = kind(way=way, max_samples=2, **extra).sample(batch, ["a", "b"], 0, 0)
        (offsets,) = (value for name, value in samples.items() if name.endswith("offsets"))
        assert np.diff(offsets).tolist()[0] == 2
        assert np.diff(offsets).max() == 2

    def test_batches_without_keys_or_columns_are_refused(self, kind: Any, way: Any) -> None:
        batch = bare([-1, 0])
        with pytest.raises(InputError, match="there are 2 keys for 1 examples"):
            kind(way=way).sample(batch, ["a", "b"], 0, 0)
        with pytest.raises(InputError, match="the batch has no word_ids"):
            kind(way=way).sample({"parents": batch["parents"]}, ["a"], 0, 0)
        empty = assemble_batch(FlatExamples.from_segments([]), BERT, AssemblySpec())
        assert all(len(x) <= 1 for x in kind(way=way).sample(empty, [], 0, 0).values())


RECORDED: list[Any] = [
    (PhraseSampler(), "b17d098c7add71dd"),
    (
        PhraseSampler(probability=1.0, negatives=3, positive_window=2, negative_window=4),
        "82b34cb9aabe5658",
    ),
    (PhraseSampler(probability=0.9, max_samples=3), "4beb33efad288873"),
    (PhraseSampler(way="lr_sib"), "9eccdebf7b4eebad"),
    (PhraseSampler(way="lr_sib", max_height=1), "39025f158dd08f5a"),
    (
        PhraseSampler(way="lr_sib", max_height=3, negatives=4, max_samples=5, min_size=3),
        "709d5c05547916da",
    ),
    (TreeSampler(), "088ef69c6a970388"),
    (TreeSampler(negatives=3, max_samples=4, min_size=3, max_size=6), "672aa4b325fe7fdb"),
    pytest.param(TreeSampler(way="lr_sib"), "1ef350e4e4926109", marks=LONG_COMPILATION),
    pytest.param(
        TreeSampler(way="lr_sib", negatives=3, max_samples=4, min_size=3, max_size=7),
        "8b83a46cfcd9d439",
        marks=LONG_COMPILATION,
    ),
]
"""Samplers, and the first digits of the SHA-256 of what they drew when this was recorded."""


def recorded_trees() -> list[list[int]]:
    """Sixty forests of 2 to 31 words, projective or not, from numbers that never change."""
    forests = []
    for number in range(60):
        draws = splitmix(200, stream_seed("contrast", number)).tolist()
        order = sorted(range(2 + draws[0] % 30), key=lambda node, draws=draws: draws[1 + node])
        parents = [-1] * len(order)
        for at, node in enumerate(order[1:], 1):
            parents[node] = order[draws[50 + at] % at] if draws[100 + at] % 10 else -1
        forests.append(parents)
    return forests


@pytest.mark.parametrize(("sampler", "digest"), RECORDED)
def test_samples_are_those_recorded(sampler: Any, digest: str) -> None:
    forests = recorded_trees()
    batch, keys = bare(*forests), [f"k{number}" for number in range(len(forests))]
    found = hashlib.sha256()
    for epoch in range(3):
        for name, array in sampler.sample(batch, keys, 7, epoch).items():
            found.update(f"{name}{array.dtype}{array.shape}".encode() + array.tobytes())
    assert found.hexdigest().startswith(digest)


class TestDraws:
    @given(st.integers(0, 2**64 - 1))
    def test_numbers_are_those_of_splitmix(self, seed: int) -> None:
        state = np.array([seed], np.uint64)
        assert [int(next_number(state)) for _ in range(5)] == splitmix(5, seed).tolist()

    def test_numbers_are_those_of_the_definition(self) -> None:
        # The first three of the authors' C program, from seed 1234567.
        expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
        assert splitmix(3, 1234567).tolist() == expected


def test_texts_leave_out_pieces_without_a_word() -> None:
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
