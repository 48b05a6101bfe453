"""Assembly of flat examples, and what all batches share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from syntax.batches import (
    AssemblySpec,
    BatchBuffers,
    FlatExamples,
    SpecialTokens,
    assemble_batch,
    kernels,
)
from syntax.errors import InputError
from syntax.matrices import MATRICES, tree_depth
from tests.syntax.batches_cases import BERT, CAT, DOGS, XLMR, assemble, segment


class TestFlatExamples:
    def test_flat_examples_refuse_columns_that_disagree(self) -> None:
        with pytest.raises(InputError, match="columns of a segment differ in length"):
            replace(DOGS, upos=np.zeros(2, np.uint8))
        flat = FlatExamples.from_segments([[DOGS]])
        with pytest.raises(InputError, match="columns of a batch differ in length"):
            replace(flat, head=np.zeros(2, np.int32))

    @pytest.mark.parametrize(
        "offsets",
        [{"segment_offsets": [0, 2]}, {"example_offsets": [0, 2]}, {"example_offsets": 1}],
    )
    def test_flat_examples_refuse_offsets_that_do_not_span(self, offsets) -> None:
        with pytest.raises(InputError, match="ascending from 0 to"):
            replace(FlatExamples.from_segments([[DOGS]]), **offsets)  # type: ignore[arg-type]

    def test_stored_dtypes_and_read_only_columns_are_taken(self) -> None:
        expected = assemble([DOGS, CAT])
        flat = FlatExamples.from_segments([[DOGS, CAT]])
        narrow = {"head": np.int16, "word_ids": np.int16, "input_ids": np.int64}
        columns = {name: getattr(flat, name).astype(dtype) for name, dtype in narrow.items()}
        columns["upos"] = np.frombuffer(flat.upos.tobytes(), np.uint8)
        batch = assemble_batch(replace(flat, **columns), BERT, AssemblySpec())
        for name, array in expected.items():
            np.testing.assert_array_equal(batch[name], array)
        assert len(kernels.gather.signatures) == len(kernels.place.signatures) == 1

    def test_lengths_count_pieces(self) -> None:
        flat = FlatExamples.from_segments([[DOGS, CAT], [CAT], [segment([])]])
        assert len(flat) == 3
        assert flat.lengths.tolist() == [5, 2, 0]

    def test_only_requested_matrices_are_made(self) -> None:
        assert "distance" not in assemble([DOGS], matrices=("depth.v1",))
        assert {"distance", "depth", "ancestor"}.isdisjoint(assemble([DOGS], matrices=()))


@pytest.mark.parametrize("special", [BERT, XLMR])
def test_special_tokens_survive_json(special: SpecialTokens) -> None:
    content = special.to_json()
    assert SpecialTokens.from_json(content) == special
    assert content["prefix"] == list(special.prefix)
    assert special.count(1) == 2
    assert special.count(2) == 2 + len(special.separator)


@pytest.fixture
def newcomer() -> Iterator[str]:
    """A matrix of somebody else's that reads the tree alone, registered while a test runs."""
    MATRICES.add("as_deep.v1", lambda parents: np.equal.outer(*[tree_depth(parents)] * 2))
    yield "as_deep"
    del MATRICES._items["as_deep.v1"]


def test_registered_matrix_is_made_example_by_example(newcomer: str) -> None:
    word = segment([-1, 0, 0, 0], [0, 0, 1, 2])
    batch = assemble([word], [CAT], matrices=(newcomer, "depth"), policy="broadcast", max_length=5)
    expected = np.equal.outer(batch["depth"][0], batch["depth"][0])
    assert batch[newcomer][0].tolist() == expected.tolist()
    expected = np.pad(np.equal.outer(*[batch["depth"][1, :4]] * 2), (0, 1))
    assert batch[newcomer][1].tolist() == expected.tolist()


def test_a_ring_of_memory_holds_as_many_batches() -> None:
    flat = FlatExamples.from_segments([[DOGS, CAT]])
    ring = [BatchBuffers(), BatchBuffers()]
    batches = [assemble_batch(flat, BERT, AssemblySpec(), ring[at % 2]) for at in range(4)]
    assert np.shares_memory(batches[0]["input_ids"], batches[2]["input_ids"])
    assert not np.shares_memory(batches[2]["input_ids"], batches[3]["input_ids"])
    held = sum(buffers.nbytes for buffers in ring)
    assemble_batch(flat, BERT, AssemblySpec(), ring[0])
    assert sum(buffers.nbytes for buffers in ring) == held
