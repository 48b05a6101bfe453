"""Every matrix that the host makes is made alike on a device, from the nodes of whole sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.batches import AssemblySpec, FlatExamples, SpecialTokens, Template, assemble_batch
from syntax.errors import SpecError, UnknownNameError
from syntax.matrices import MATRICES, distance_weights
from trainer.batch import UNREACHABLE, SyntaxBatch
from trainer.matrices.derive import node_arrays, on_device, with_matrices
from trainer.systems.gate.relations import distance_weights as device_weights

BERT = SpecialTokens(prefix=(101,), separator=(102,), suffix=(102,), pad_id=0, vocab_size=200)
FIELDS = {"distance": "distance_BLL", "depth": "depth_BL", "ancestor": "ancestor_BLL"}
SETTINGS = (
    "sla_distance(variant=as_released)",
    "sla_mask(threshold=1)",
    "sla_mask(punctuation=true,threshold=2,variant=as_released)",
    "gate_distance(keep=0)",
    "gate_distance(keep=2)",
    "gate_distance(keep=-1)",
    "gate_weights(keep=1,threshold=4)",
    "gate_weights(variant=as_released)",
    "sgnet_mask(variant=as_released)",
    "sgnet_mask(variant=convert_span)",
)
DERIVED = (*(name for name in MATRICES if name.removesuffix(".v1") not in FIELDS), *SETTINGS)
DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    ),
]


@st.composite
def sentences(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Head and word of each piece: a forest of words, some of several pieces."""
    size = draw(st.integers(1, 6))
    order = draw(st.permutations(range(size)))
    parents = [-1] * size
    for position in range(1, size):
        parents[order[position]] = draw(st.sampled_from([-1, *order[:position]]))
    counts = [draw(st.integers(1, 3)) for _ in range(size)]
    first = np.concatenate([[0], np.cumsum(counts)]).tolist()
    return [
        (first[word] if piece else first[parent] if parent >= 0 else -1, word)
        for word, parent in enumerate(parents)
        for piece in range(counts[word])
    ]


@st.composite
def segments(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Head, word and sentence of each piece of one or two sentences; one piece may have no word."""
    rows: list[tuple[int, int, int]] = []
    for number in range(draw(st.integers(1, 2))):
        start, words = len(rows), 1 + max((word for _, word, _ in rows), default=-1)
        pieces = draw(sentences())
        rows += [(head + start if head >= 0 else -1, word + words, number) for head, word in pieces]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(rows)))
        rows = [(head + (head >= at), word, number) for head, word, number in rows]
        rows.insert(at, (-2, -1, -1))
    return rows


@st.composite
def examples(draw: st.DrawFn) -> FlatExamples:
    """One to three examples of two segments with marks and tags."""
    texts = [draw(segments()) for _ in range(2 * draw(st.integers(1, 3)))]
    rows = np.array([row for text in texts for row in text], np.int32)
    size = len(rows)
    marks = st.lists(st.sampled_from([0, 0, 0, 1]), min_size=size, max_size=size)
    tags = st.lists(st.integers(0, 17), min_size=size, max_size=size)
    return FlatExamples(
        input_ids=np.arange(size, dtype=np.int32),
        head=rows[:, 0],
        word_ids=rows[:, 1],
        sentence_ids=rows[:, 2],
        upos=np.array(draw(tags), np.uint8),
        deprel=np.zeros(size, np.uint8),
        marks=np.array(draw(marks), np.uint8),
        segment_offsets=np.concatenate([[0], np.cumsum([len(text) for text in texts])]),
        example_offsets=np.arange(0, len(texts) + 1, 2),
    )


SPECS = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["attach", "broadcast", "chain", "none", "copy_head"]),
        "joint_root": st.booleans(),
        "separator_edge": st.sampled_from(["root", "last_piece", "none"]),
        "pad_to_multiple_of": st.sampled_from([1, 8]),
    }
)
CUTS = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {
            "max_length": st.integers(5, 20),
            "truncation_side": st.sampled_from(["right", "left"]),
        }
    ),
    st.fixed_dictionaries({"segment_limits": st.tuples(st.integers(1, 6), st.integers(1, 6))}),
    st.fixed_dictionaries(
        {
            "max_length": st.integers(9, 14),
            "stride": st.integers(1, 3),
            "truncation": st.just("only_second"),
            "segment_limits": st.just((3, None)),
        }
    ),
    st.just({"template": Template.of(("a", "b"), "a b", "b")}),
    st.just({"level": "sentence", "truncation": "only_second"}),
)


def on(device: str, arrays: dict[str, Any]) -> SyntaxBatch:
    batch = SyntaxBatch.from_numpy(arrays, extras=node_arrays(arrays)).to(device)
    return with_matrices(batch, DERIVED).to("cpu")


def plain(values: Any, name: str) -> np.ndarray:
    """Values with -1 for "no path", whatever the dtype."""
    array = np.asarray(values)
    if "distance" not in name:
        return array
    top = np.iinfo(np.uint16).max if array.dtype == np.int32 else np.iinfo(array.dtype).max
    return np.where(array == top, -1, array.astype(np.int64))


def check(flat: FlatExamples, device: str, **options: Any) -> None:
    spec = AssemblySpec(matrices=(*FIELDS, *DERIVED), nodes=True, **options)
    arrays = assemble_batch(flat, BERT, spec)
    batch = on(device, arrays)
    for name in (*FIELDS, *DERIVED):
        found = getattr(batch, FIELDS[name]) if name in FIELDS else batch.extra(name)
        expected = plain(arrays[name], name)
        np.testing.assert_array_equal(plain(found.numpy(), name), expected, err_msg=name)
        assert (found.dtype == torch.bool) == (arrays[name].dtype == bool)
        assert found.is_floating_point() == (arrays[name].dtype.kind == "f")


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=30)
@given(flat=examples(), spec=SPECS, cut=CUTS)
def test_a_device_derives_what_the_host_does(
    device: str, flat: FlatExamples, spec: dict[str, Any], cut: dict[str, Any]
) -> None:
    check(flat, device, **spec, **cut)


def chain_of(size: int, flat_marks: bool = False) -> FlatExamples:
    zeros = np.zeros(size, np.uint8)
    marks = zeros.copy()
    marks[[0, -1]] = flat_marks
    whole = np.arange(size, dtype=np.int32)
    return FlatExamples(
        *(whole, whole - 1, whole, zeros, zeros, np.zeros(size, np.int32)),
        segment_offsets=np.array([0, size]),
        example_offsets=np.array([0, 1]),
        marks=marks,
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [126, 254, 255, 300])
def test_long_paths_fit(device: str, size: int) -> None:
    check(chain_of(size, flat_marks=True), device, joint_root=False, max_length=size - 20)


def test_distances_of_a_cut_example_run_through_what_was_cut() -> None:
    heads = np.array([5, 0, 1, 5, 3, -1], np.int32)  # the root is cut off
    flat = chain_of(6)
    flat = replace(flat, head=heads)
    spec = AssemblySpec(max_length=6, joint_root=False, nodes=True, matrices=())
    arrays = assemble_batch(flat, BERT, spec)
    assert arrays["parents"][0].tolist() == [-1, -1, 1, 2, -1, -1]
    batch = on("cpu", arrays)
    assert batch.distances()[0, 3].tolist() == [255, 2, 1, 0, 4, 255]


def test_a_mark_on_a_later_piece_stands_for_its_word() -> None:
    flat = chain_of(4)
    words = np.array([0, 0, 1, 2], np.int32)  # 0 has two pieces; 1 and 2 hang from it
    flat = replace(flat, head=np.array([-1, 0, 0, 0], np.int32), word_ids=words)
    flat = replace(flat, marks=np.array([0, 1, 0, 0], np.uint8))
    check(flat, "cpu", policy="broadcast", joint_root=False)
    spec = AssemblySpec(policy="broadcast", joint_root=False, matrices=(), nodes=True)
    distance = on("cpu", assemble_batch(flat, BERT, spec)).extra("gate_distance.v1")
    assert distance[0, 1, 1:5].tolist() == [0, 0, 1, 1]


def test_every_matrix_has_a_form_for_devices() -> None:
    assert set(on_device()) == set(MATRICES)


def test_nodes_are_small_and_there_only_if_asked_for() -> None:
    asked = assemble_batch(chain_of(9), BERT, AssemblySpec(matrices=(), nodes=True))
    sizes = {name: array.dtype.itemsize for name, array in asked.items() if "node_" in name}
    assert sizes == {
        **dict.fromkeys(("node_parents", "node_source", "node_column"), 2),
        **dict.fromkeys(("node_special", "node_upos", "node_marks"), 1),
    }
    plain_batch = assemble_batch(chain_of(9), BERT, AssemblySpec(matrices=()))
    assert not [name for name in plain_batch if name.startswith("node_")]
    with pytest.raises(SpecError, match="nodes=True"):
        node_arrays(plain_batch)
    with pytest.raises(SpecError, match="nodes=True"):
        with_matrices(SyntaxBatch.from_numpy(plain_batch))


def test_unknown_matrices_and_settings_are_refused() -> None:
    arrays = assemble_batch(chain_of(4), BERT, AssemblySpec(matrices=(), nodes=True))
    batch = SyntaxBatch.from_numpy(arrays, extras=node_arrays(arrays))
    with pytest.raises(UnknownNameError, match="moonlight"):
        with_matrices(batch, ["moonlight"])
    with pytest.raises(SpecError, match="no setting threshold=two"):
        with_matrices(batch, ["sla_mask(threshold=two)"])


def test_the_nodes_do_not_stay(batch_of_chain: SyntaxBatch) -> None:
    assert set(with_matrices(batch_of_chain).extras) == {"kept"}


@pytest.fixture
def batch_of_chain() -> SyntaxBatch:
    arrays = assemble_batch(chain_of(4), BERT, AssemblySpec(matrices=(), nodes=True))
    arrays["kept"] = np.arange(3)
    return SyntaxBatch.from_numpy(arrays, extras=["kept", *node_arrays(arrays)])


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
def test_weights_are_those_of_the_host(variant: str) -> None:
    distance = np.array([[0, 1, 2], [3, 4, 255]], np.uint8)
    for threshold in (1, 3, 254):
        found = device_weights(torch.from_numpy(distance), threshold, variant)  # type: ignore[arg-type]
        expected = distance_weights(distance, threshold, variant)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.numpy(), expected)
    with pytest.raises(SpecError, match="threshold is 255"):
        device_weights(torch.from_numpy(distance), UNREACHABLE[torch.uint8])
