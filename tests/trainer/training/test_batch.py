from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch


def arrays(dtype: type = np.uint8) -> dict[str, object]:
    flat = np.zeros((1, 2), np.int64)
    return {
        **{name: flat.copy() for name in ("input_ids", "token_type_ids", "parents")},
        **{name: flat.astype(bool) for name in ("attention_mask", "special_tokens_mask")},
        **{name: flat.astype(np.uint8) for name in ("upos", "deprel")},
        "lengths": np.array([2], np.int32),
        "depth": flat.astype(dtype),
        "distance": np.full((1, 2, 2), np.iinfo(dtype).max, dtype),
        "ancestor": np.zeros((1, 2, 2), bool),
        "label": np.array([1]),
        "score": np.array([0.5], np.float32),
        "example_id": ["dev-1"],
    }


def test_a_batch_shares_the_memory_of_the_stream() -> None:
    stream = arrays()
    batch = SyntaxBatch.from_numpy(stream, labels=("label", "score"))
    assert batch.input_ids_BL.data_ptr() == stream["input_ids"].ctypes.data
    assert batch.labels["label"].tolist() == [1]
    assert batch.labels["score"].dtype == torch.float32
    assert batch.example_ids == ("dev-1",)
    assert len(batch) == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_no_path_means_no_path_in_either_width(dtype: type) -> None:
    stream = arrays(dtype)
    stream["distance"][0, 0, 0] = 0
    batch = SyntaxBatch.from_numpy(stream)
    assert batch.reachable_BLL.tolist() == [[[True, False], [False, False]]]
    assert batch.unreachable == np.iinfo(dtype).max


def test_the_matrices_may_be_left_out_but_are_then_missed_by_name() -> None:
    stream = arrays()
    del stream["distance"], stream["depth"], stream["ancestor"]
    batch = SyntaxBatch.from_numpy(stream)
    with pytest.raises(SpecError, match="no distance"):
        batch.distances()
    with pytest.raises(SpecError, match="no depth"):
        batch.depths()


def test_shapes_that_contradict_each_other_are_refused() -> None:
    batch = SyntaxBatch.from_numpy(arrays())
    with pytest.raises(SpecError, match="upos_BL has shape"):
        replace(batch, upos_BL=torch.zeros(1, 3, dtype=torch.uint8))


def test_moving_a_batch_moves_every_tensor() -> None:
    moved = SyntaxBatch.from_numpy(arrays(), labels=("label",)).to("meta")
    assert moved.input_ids_BL.device.type == moved.labels["label"].device.type == "meta"
    assert moved.distance_BLL is not None
    assert moved.distance_BLL.device.type == "meta"
    assert moved.example_ids == ("dev-1",)


def test_further_arrays_are_carried_by_name_and_moved() -> None:
    mask, negatives = np.ones((1, 2, 2), bool), np.zeros((5, 10), np.int32)
    stream = {**arrays(), "sla_mask(threshold=4)": mask, "phrase_negatives": negatives}
    batch = SyntaxBatch.from_numpy(stream, extras=["sla_mask(threshold=4)", "phrase_negatives"])
    assert batch.extra("sla_mask(threshold=4)").shape == (1, 2, 2)
    assert batch.to("meta").extra("phrase_negatives").device.type == "meta"
    with pytest.raises(SpecError, match="no lca"):
        batch.extra("lca")


def test_further_arrays_that_are_missing_or_of_another_batch_are_refused() -> None:
    with pytest.raises(SpecError, match="gave no 'lca', only input_ids"):
        SyntaxBatch.from_numpy(arrays(), extras=["lca"])
    stream = {**arrays(), "sgnet_mask": np.ones((1, 3, 3), bool)}
    with pytest.raises(SpecError, match=r"sgnet_mask has shape \(1, 3, 3\), but 1 examples of 2"):
        SyntaxBatch.from_numpy(stream, extras=["sgnet_mask"])


def test_memory_that_may_not_be_written_is_copied() -> None:
    stream = arrays()
    stream["input_ids"].flags.writeable = False
    batch = SyntaxBatch.from_numpy(stream)
    assert batch.input_ids_BL.data_ptr() != stream["input_ids"].ctypes.data


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_pinned_batch_reaches_the_gpu() -> None:
    batch = SyntaxBatch.from_numpy(arrays(), labels=("label",)).pin_memory()
    assert batch.to("cuda", non_blocking=True).labels["label"].tolist() == [1]
