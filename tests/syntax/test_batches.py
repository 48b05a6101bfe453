"""Batches against a twin that builds whole sequences as lists, searches, and deletes rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.batches import (
    AssemblySpec,
    BatchBuffers,
    FlatExamples,
    SegmentFeatures,
    SpecialTokens,
    assemble_batch,
)
from syntax.matrices import MATRICES
from syntax.subwords import POLICIES
from tests.syntax.test_batches_sequences import BERT, ROBERTA, Twin, rows_of

Texts = st.SearchStrategy[Any]
SlowMatrices = Callable[[list[int]], Any]

LONG_FRAME = SpecialTokens(
    prefix=(1, 2),
    separator=(3, 4),
    suffix=(5, 6),
    pad_id=0,
    vocab_size=200,
    segment_type_ids=(3, 4),
)
NO_PREFIX = SpecialTokens(prefix=(), separator=(), suffix=(1,), pad_id=0, vocab_size=200)


def rectangle(rows: list[list[Any]], length: int, padding: Any) -> list[list[Any]]:
    return [row + [padding] * (length - len(row)) for row in rows]


def check(
    batch: dict[str, Any],
    examples: list[list[SegmentFeatures]],
    special: SpecialTokens,
    spec: AssemblySpec,
    slow_matrices: SlowMatrices,
) -> None:
    twins = [Twin(row, special, spec) for row in rows_of(examples, special, spec)]
    longest = max((len(twin.kept) for twin in twins), default=0)
    length = -(-longest // spec.pad_to_multiple_of) * spec.pad_to_multiple_of

    def same(name: str, dtype: Any, padding: Any, value: Callable[[int, Twin, int], Any]) -> None:
        rows = [[value(at, twin, node) for node in twin.kept] for at, twin in enumerate(twins)]
        assert batch[name].dtype == dtype, name
        assert batch[name].shape == (len(twins), length), name
        assert batch[name].tolist() == rectangle(rows, length, padding), name

    def stored(column: str, missing: int) -> Callable[[int, Twin, int], int]:
        def value(at: int, twin: Twin, node: int) -> int:
            if twin.piece[node] is None:
                return missing
            segment, piece = twin.piece[node]
            return int(getattr(examples[at][segment], column)[piece])

        return value

    same("input_ids", np.int64, special.pad_id, lambda _, twin, node: twin.token[node])
    same("token_type_ids", np.int64, 0, lambda _, twin, node: twin.type_id[node])
    same("attention_mask", np.bool_, False, lambda *_: True)
    same("special_tokens_mask", np.bool_, True, lambda _, twin, node: twin.piece[node] is None)
    same("segment_ids", np.int32, -1, lambda _, twin, node: (twin.piece[node] or (-1,))[0])
    same("word_ids", np.int32, -1, stored("word_ids", -1))
    same("sentence_ids", np.int32, -1, stored("sentence_ids", -1))
    same("upos", np.uint8, 0, stored("upos", 0))
    same("deprel", np.uint8, 0, stored("deprel", 0))
    same("parents", np.int32, -1, lambda _, twin, node: twin.nearest_kept(node))
    assert batch["lengths"].tolist() == [len(twin.kept) for twin in twins]
    assert batch["lengths"].dtype == np.int32
    check_matrices(batch, twins, length, slow_matrices)


def check_matrices(
    batch: dict[str, Any], twins: list[Twin], length: int, slow_matrices: SlowMatrices
) -> None:
    slow = [slow_matrices(twin.parents) for twin in twins]
    paths = [step for one in slow for row in one.distance for step in row if step is not None]
    dtype = np.uint16 if max(paths, default=0) > 254 else np.uint8
    unreachable = np.iinfo(dtype).max
    assert batch["distance"].dtype == batch["depth"].dtype == dtype
    assert batch["ancestor"].dtype == np.bool_
    for row, (twin, one) in enumerate(zip(twins, slow, strict=True)):
        shown = [twin.source[node] for node in twin.kept]
        distance = [
            [unreachable if one.distance[i][j] is None else one.distance[i][j] for j in shown]
            for i in shown
        ]
        beyond = [[unreachable] * length] * (length - len(shown))
        assert batch["distance"][row].tolist() == rectangle(distance, length, unreachable) + beyond
        ancestor = [[one.ancestor[i][j] for j in shown] for i in shown]
        beyond = [[False] * length] * (length - len(shown))
        assert batch["ancestor"][row].tolist() == rectangle(ancestor, length, False) + beyond
        depth = [one.depth[node] for node in shown]
        assert batch["depth"][row].tolist() == depth + [0] * (length - len(shown))


@st.composite
def batches(draw: st.DrawFn, texts: Texts) -> list[list[SegmentFeatures]]:
    examples = draw(st.lists(st.lists(texts, min_size=1, max_size=3), max_size=3))
    return [
        [text.features(1000 * at) for at, text in enumerate(example, 1)] for example in examples
    ]


@st.composite
def specs(draw: st.DrawFn) -> AssemblySpec:
    return AssemblySpec(
        max_length=draw(st.none() | st.integers(6, 40)),
        policy=draw(st.sampled_from(list(POLICIES))),
        joint_root=draw(st.booleans()),
        separator_edge=draw(st.sampled_from(["root", "last_piece", "none"])),
        pad_to_multiple_of=draw(st.sampled_from([1, 8])),
    )


@given(data=st.data(), spec=specs(), frame=st.sampled_from([BERT, ROBERTA, LONG_FRAME]))
def test_any_batch_equals_its_twin(data, spec, frame, texts, slow_matrices) -> None:
    examples = data.draw(batches(texts))
    specials = max((frame.count(len(example)) for example in examples), default=0)
    if spec.max_length is not None and spec.max_length < specials:
        return
    batch = assemble_batch(FlatExamples.from_segments(examples), frame, spec)
    check(batch, examples, frame, spec, slow_matrices)


@pytest.mark.parametrize("truncation", ["only_first", "only_second"])
@given(data=st.data())
def test_one_segment_may_take_all_the_shortening(truncation, data, texts, slow_matrices) -> None:
    pair = [data.draw(texts).features(1000), data.draw(texts).features(2000)]
    other = pair[1] if truncation == "only_first" else pair[0]
    limit = len(other) + BERT.count(2) + data.draw(st.integers(0, 8))
    spec = AssemblySpec(max_length=limit, truncation=truncation)
    batch = assemble_batch(FlatExamples.from_segments([pair]), BERT, spec)
    check(batch, [pair], BERT, spec, slow_matrices)


@given(data=st.data(), spec=specs())
def test_a_tokenizer_without_prefix_has_a_tree_per_sentence(
    data: st.DataObject, spec: AssemblySpec, texts: Texts, slow_matrices: SlowMatrices
) -> None:
    examples = data.draw(batches(texts))
    spec = AssemblySpec(
        max_length=spec.max_length,
        policy=spec.policy,
        joint_root=False,
        separator_edge=spec.separator_edge,
    )
    batch = assemble_batch(FlatExamples.from_segments(examples), NO_PREFIX, spec)
    check(batch, examples, NO_PREFIX, spec, slow_matrices)


def chain_segment(size: int, first: int = 0) -> SegmentFeatures:
    """A text of ``size`` one-piece words, each hanging from the one before."""
    number = np.arange(size, dtype=np.int32)
    tag = (number % 17).astype(np.uint8)
    offsets = np.stack([number, number + 1], axis=1)
    return SegmentFeatures(first + number, number - 1, number, tag, tag, 0 * number, offsets)


@pytest.mark.parametrize("limit", [None, 300, 128, 4])
def test_one_deep_text_widens_the_batch_even_where_it_is_cut(limit, slow_matrices) -> None:
    examples = [[chain_segment(3)], [chain_segment(280), chain_segment(2)]]
    spec = AssemblySpec(max_length=limit)
    batch = assemble_batch(FlatExamples.from_segments(examples), BERT, spec)
    assert batch["distance"].dtype == np.uint16
    check(batch, examples, BERT, spec, slow_matrices)


def test_two_sentences_whose_joint_path_is_long_widen_the_batch() -> None:
    # Neither is deeper than 128, but the path through the joint root has 255 edges.
    examples = [[chain_segment(127), chain_segment(128)]]
    flat = FlatExamples.from_segments(examples)
    assert assemble_batch(flat, BERT, AssemblySpec())["distance"].dtype == np.uint16
    apart = assemble_batch(flat, BERT, AssemblySpec(joint_root=False))
    assert apart["distance"].dtype == np.uint8


@pytest.mark.parametrize("policy", POLICIES)
def test_a_text_hanging_from_its_end_keeps_its_root_when_cut(policy, slow_matrices) -> None:
    # Everything that is kept descends from deleted pieces, the root first of all.
    text = chain_segment(40)
    backwards = SegmentFeatures(
        text.input_ids,
        np.append(np.arange(1, 40), -1).astype(np.int32),
        text.word_ids,
        text.upos,
        text.deprel,
        text.sentence_ids,
        text.offsets,
    )
    examples = [[backwards], [backwards, text], [text]]
    spec = AssemblySpec(max_length=9, policy=policy)
    batch = assemble_batch(FlatExamples.from_segments(examples), BERT, spec)
    check(batch, examples, BERT, spec, slow_matrices)
    assert batch["depth"][0].tolist() == [0, 40, 39, 38, 37, 36, 35, 34, 1]
    assert batch["parents"][0].tolist() == [-1, 2, 3, 4, 5, 6, 7, 0, 0]


@given(data=st.data())
def test_reused_memory_keeps_nothing_of_earlier_batches(data, texts, slow_matrices) -> None:
    buffers = BatchBuffers()
    large = FlatExamples.from_segments([[chain_segment(300)], [chain_segment(40, 5000)] * 3])
    assemble_batch(large, BERT, AssemblySpec(), buffers)
    for spec in data.draw(st.lists(specs().filter(lambda spec: not spec.max_length), max_size=3)):
        examples = data.draw(batches(texts))
        batch = assemble_batch(FlatExamples.from_segments(examples), BERT, spec, buffers)
        check(batch, examples, BERT, spec, slow_matrices)


@given(data=st.data())
def test_an_example_is_the_same_alone_and_in_company(data: st.DataObject, texts: Texts) -> None:
    examples = data.draw(batches(texts).filter(len))
    flat = FlatExamples.from_segments(examples)
    rows = data.draw(st.lists(st.integers(0, len(examples) - 1), min_size=1, max_size=5))
    batch = assemble_batch(flat.take(rows), BERT, AssemblySpec())
    for at, row in enumerate(rows):
        alone = assemble_batch(FlatExamples.from_segments([examples[row]]), BERT, AssemblySpec())
        size = int(alone["lengths"][0])
        for name in alone.keys() - {"lengths"}:
            inside = (at,) + (slice(size),) * (alone[name].ndim - 1)
            np.testing.assert_array_equal(batch[name][inside], alone[name][0], err_msg=name)


@pytest.mark.parametrize("name", MATRICES)
@given(data=st.data())
def test_every_registered_matrix_reaches_the_batch(name, data, texts) -> None:
    examples = data.draw(batches(texts))
    spec = AssemblySpec(max_length=12, matrices=(name,), policy="broadcast")
    flat = FlatExamples.from_segments(examples)
    batch = assemble_batch(flat, BERT, spec)
    (key,) = batch.keys() - assemble_batch(flat, BERT, AssemblySpec(12, matrices=())).keys()
    assert key in (name, name.rpartition(".v")[0])
    assert set(batch[key].shape[1:]) <= {batch["input_ids"].shape[1]}
    assert batch[key].shape[0] == len(examples)
