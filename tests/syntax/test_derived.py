"""Relations in batches: whole sequences with special tokens, policies, truncation, padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.batches import AssemblySpec, FlatExamples, SpecialTokens, assemble_batch, mark_spans
from syntax.errors import InputError
from syntax.matrices import COMPILED, MATRICES, UNREACHABLE
from tests.syntax.relation_twins import Twin

Texts = st.SearchStrategy[Any]

BERT = SpecialTokens(prefix=(101,), separator=(102,), suffix=(102,), pad_id=0, vocab_size=200)
POSITIONS = ("lca.v1", "subtree_first.v1", "subtree_last.v1")
DERIVED = [name for name in MATRICES if name.removesuffix(".v1") not in COMPILED]
NAMES = (
    *DERIVED,
    "sla_mask(punctuation=true,threshold=1,variant=as_released)",
    "gate_distance(keep=0)",
    "sgnet_mask(variant=as_released)",
    "sgnet_mask(variant=convert_span)",
)


@st.composite
def flat_batches(draw: st.DrawFn, texts: Texts) -> FlatExamples:
    """One to three examples of one or two segments, some pieces marked."""
    segments = st.lists(texts, min_size=1, max_size=2)
    examples = draw(st.lists(segments, min_size=1, max_size=3))
    flat = FlatExamples.from_segments([[text.features() for text in x] for x in examples])
    size = len(flat.input_ids)
    marks = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), np.uint8)
    upos = np.array(draw(st.lists(st.integers(0, 17), min_size=size, max_size=size)), np.uint8)
    columns = {**flat.columns, "marks": marks, "upos": upos}
    return FlatExamples(
        **columns, segment_offsets=flat.segment_offsets, example_offsets=flat.example_offsets
    )


def columns_of(name: str, batch: dict[str, Any], row: int, flat: FlatExamples) -> dict[str, Any]:
    """What the matrix reads, put together from the arrays of an untruncated batch."""
    size = int(batch["lengths"][row])
    special = batch["special_tokens_mask"][row, :size]
    first, end = flat.segment_offsets[flat.example_offsets[row : row + 2]]
    marks = np.zeros(size, np.uint8)
    marks[~special] = flat.marks[first:end]  # type: ignore[index]
    known = {"special": special, "upos": batch["upos"][row, :size], "marks": marks}
    return {key: value for key, value in known.items() if key in MATRICES.columns(name)}


def later_pieces(batch: dict[str, Any], row: int) -> np.ndarray[Any, Any]:
    """The piece that each piece shows under ``broadcast``: its word's first."""
    size = int(batch["lengths"][row])
    parents, words = batch["parents"][row, :size], batch["word_ids"][row, :size]
    above = np.maximum(parents, 0)
    later = (parents >= 0) & (words >= 0) & (words[above] == words)
    later &= batch["segment_ids"][row, above] == batch["segment_ids"][row, :size]
    return np.where(later, above, np.arange(size))


@pytest.mark.slow_cases
@pytest.mark.parametrize("policy", ["attach", "broadcast"])
@pytest.mark.parametrize("joint_root", [True, False])
@settings(max_examples=15)
@given(data=st.data())
def test_batches_hold_the_functions_of_whole_sequences(policy, joint_root, data, texts) -> None:
    flat = data.draw(flat_batches(texts))
    spec = AssemblySpec(policy=policy, joint_root=joint_root, matrices=NAMES)
    batch = assemble_batch(flat, BERT, spec)
    for name in NAMES:
        for row, size in enumerate(batch["lengths"].tolist()):
            further = columns_of(name, batch, row, flat)
            if policy == "broadcast":
                further["source"] = later_pieces(batch, row)
            expected = MATRICES[name](batch["parents"][row, :size], **further)
            inside = (row,) + (slice(size),) * expected.ndim
            np.testing.assert_array_equal(batch[name][inside], expected, err_msg=name)
            outside = np.delete(batch[name][row], np.s_[:size], axis=0)
            padding = MATRICES.padding(name)
            far = np.iinfo(batch[name].dtype).max if padding == UNREACHABLE else padding
            assert (outside == far).all(), name


@settings(max_examples=30)
@given(data=st.data(), limit=st.integers(3, 12), policy=st.sampled_from(["attach", "broadcast"]))
def test_truncation_deletes_rows_and_columns(data, limit, policy, texts) -> None:
    flat = data.draw(flat_batches(texts))
    whole = assemble_batch(flat, BERT, AssemblySpec(policy=policy, matrices=NAMES))
    spec = AssemblySpec(max_length=limit, policy=policy, matrices=NAMES)
    batch = assemble_batch(flat, BERT, spec)
    for row, size in enumerate(batch["lengths"].tolist()):
        kept = positions(batch, whole, row)
        for name in set(NAMES) - set(POSITIONS):
            cells = (row, *np.ix_(*(kept,) * (whole[name].ndim - 1)))
            inside = (row,) + (slice(size),) * (whole[name].ndim - 1)
            np.testing.assert_array_equal(batch[name][inside], whole[name][cells], err_msg=name)
        check_positions(batch, whole, row, kept)


def positions(batch: dict[str, Any], whole: dict[str, Any], row: int) -> list[int]:
    """Where the kept pieces stand in the whole sequence, whose segments were cut at their ends."""
    kept: list[int] = []
    for segment in sorted(set(batch["segment_ids"][row].tolist()) - {-1}):
        places = np.flatnonzero(whole["segment_ids"][row] == segment)
        kept += places[: int((batch["segment_ids"][row] == segment).sum())].tolist()
    special = whole["special_tokens_mask"][row] & whole["attention_mask"][row]
    return sorted({*kept, *np.flatnonzero(special).tolist()})


def check_positions(
    batch: dict[str, Any], whole: dict[str, Any], row: int, kept: list[int]
) -> None:
    twin = Twin(whole["parents"][row, : whole["lengths"][row]].tolist())
    for at, place in enumerate(kept):
        for other, partner in enumerate(kept):
            meeting = int(whole["lca.v1"][row, place, partner])
            above = twin.walk(meeting) if meeting >= 0 else []
            expected = next((kept.index(node) for node in above if node in kept), -1)
            assert batch["lca.v1"][row, at, other] == expected
        first, last = (int(whole[name][row, place]) for name in POSITIONS[1:])
        begin, end = (int(batch[name][row, at]) for name in POSITIONS[1:])
        inside = [kept.index(node) for node in range(first, last + 1) if node in kept]
        assert set(inside) >= {begin, end}
        assert begin <= at <= end or whole["lengths"][row] != len(kept)


def test_distances_of_short_and_long_paths_agree_on_what_is_unreachable() -> None:
    chain = AssemblySpec(joint_root=False, matrices=("sla_distance", "gate_distance"))
    parents = [list(range(-1, 299)), [-1, -1, 0]]
    batch = assemble_batch(flat_of(*parents), BERT, chain)
    for name in chain.matrices:
        assert batch[name].dtype == np.uint16
        assert batch[name][0, 1, 299] >= 297
        assert batch[name][1, 1, 3] <= 1
        assert batch[name][1, 2, 5:].min() == 65535
    assert batch["gate_distance"][1, 1, 2] == 65535


def flat_of(*trees: list[int]) -> FlatExamples:
    """One segment per tree, each piece a word of one character."""
    sizes = np.array([len(tree) for tree in trees])
    places = np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)
    zeros = np.zeros(sizes.sum(), np.uint8)
    return FlatExamples(
        input_ids=places,
        head=np.concatenate(trees).astype(np.int32),
        word_ids=places,
        upos=zeros,
        deprel=zeros,
        sentence_ids=0 * places,
        segment_offsets=np.append(0, sizes.cumsum()),
        example_offsets=np.arange(len(trees) + 1),
        offsets=np.stack([places, places + 1], axis=1),
    )


class TestMarks:
    FLAT = flat_of([1, 2, -1, 4, 2], [-1, 0, 1])

    def test_characters_mark_the_pieces_that_they_touch(self) -> None:
        marked = mark_spans(self.FLAT, [[(0, 0, 2), (0, 3, 4)], [(0, 2, 3)]])
        assert marked.marks is not None
        assert marked.marks.tolist() == [1, 1, 0, 2, 0, 0, 0, 1]
        assert self.FLAT.marks is None

    def test_overlapping_spans_have_marks_of_their_own(self) -> None:
        marked = mark_spans(self.FLAT, [[(0, 0, 3), (0, 2, 4)], []])
        assert marked.marks is not None
        assert marked.marks.tolist() == [1, 1, 3, 2, 0, 0, 0, 0]

    def test_marks_go_where_their_pieces_go(self) -> None:
        marked = mark_spans(self.FLAT, [[(0, 0, 1)], [(0, 1, 2)]]).take([1, 0, 1])
        assert marked.marks is not None
        assert marked.marks.tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0]

    def test_the_tree_of_a_batch_is_pruned_around_them(self) -> None:
        # "the dog" of "the dog chased a cat"; the other example has no marks.
        marked = mark_spans(self.FLAT, [[(0, 0, 1), (0, 1, 2)], []])
        spec = AssemblySpec(matrices=("gate_distance(keep=0)", "distance"))
        batch = assemble_batch(marked, BERT, spec)
        pruned = batch["gate_distance(keep=0)"]
        assert np.argwhere(pruned[0] < 255).tolist() == sorted(
            [[node, node] for node in range(7)] + [[1, 2], [2, 1]]
        )
        np.testing.assert_array_equal(pruned[1], batch["distance"][1] | 0)

    @pytest.mark.parametrize(
        ("spans", "message"),
        [
            ([[(0, 0, 1)]], "spans came for 1 examples; there are 2"),
            ([[(1, 0, 1)], []], "example 0 of the batch has 1 segments; a span is in segment 1"),
            (
                [[], [(0, 7, 9)]],
                r"example 1 of the batch: no piece of segment 0 covers any of characters 7",
            ),
            ([[(0, 0, 1)] * 9, []], "example 0 of the batch has 9 spans; 8 can be marked"),
        ],
    )
    def test_spans_that_mark_nothing_are_refused(self, spans: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            mark_spans(self.FLAT, spans)

    def test_marks_need_offsets(self) -> None:
        columns = {**self.FLAT.columns}
        del columns["offsets"]
        bare = FlatExamples(
            **columns,
            segment_offsets=self.FLAT.segment_offsets,
            example_offsets=self.FLAT.example_offsets,
        )
        with pytest.raises(InputError, match="the examples came without offsets"):
            mark_spans(bare, [[], []])
