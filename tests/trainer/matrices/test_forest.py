from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batch import UNREACHABLE
from trainer.matrices.forest import DeviceForest


@st.composite
def forests(draw: st.DrawFn) -> list[int]:
    size = draw(st.integers(1, 12))
    order = draw(st.permutations(range(size)))
    parents = [-1] * size
    for position in range(1, size):
        parents[order[position]] = draw(st.sampled_from([-1, *order[:position]]))
    return parents


def slow(parents: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By repeated relaxation over the edges, unlike both the kernel and the doubling."""
    size = len(parents)
    distance = np.where(np.eye(size, dtype=bool), 0, 10_000)
    for _ in range(size):
        for child, parent in enumerate(parents):
            if parent >= 0:
                through = np.minimum(distance[child], distance[parent] + 1)
                distance[child] = through
                distance[parent] = np.minimum(distance[parent], through + 1)
    ancestor = np.eye(size, dtype=bool)
    for _ in range(size):
        for child, parent in enumerate(parents):
            if parent >= 0:
                ancestor[child] |= ancestor[parent]
    return distance, ancestor.sum(1) - 1, ancestor


def pad(trees: list[list[int]], width: int) -> tuple[torch.Tensor, torch.Tensor]:
    parents = torch.full((len(trees), width), -1, dtype=torch.int32)
    for row, tree in enumerate(trees):
        parents[row, : len(tree)] = torch.tensor(tree)
    return parents, torch.tensor([len(tree) for tree in trees], dtype=torch.int32)


def derived(parents: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Distances, depths and ancestors of forests of which a batch shows every node."""
    own = torch.arange(parents.shape[1], device=parents.device)
    place = torch.where(own < lengths[:, None], own, -1)
    nothing = torch.zeros_like(place, dtype=torch.uint8)
    forest = DeviceForest.of(parents, place, place, nothing.bool(), nothing)
    return forest.distance_BNN, forest.depth_BN, forest.ancestor_BNN


def check(trees: list[list[int]], width: int, device: str = "cpu") -> None:
    parents, lengths = pad(trees, width)
    found = derived(parents.to(device), lengths.to(device))
    distance, depth, ancestor = (tensor.cpu().numpy() for tensor in found)
    none = UNREACHABLE[found[0].dtype]
    for row, tree in enumerate(trees):
        size = len(tree)
        paths, depths, ancestors = slow(tree)
        expected = np.full((width, width), none)
        expected[:size, :size] = np.where(paths >= 10_000, none, paths)
        assert (distance[row] == expected).all()
        assert (depth[row, :size] == depths).all()
        assert not depth[row, size:].any()
        assert (ancestor[row, :size, :size] == ancestors).all()
        assert ancestor[row].sum() == ancestors.sum()


@settings(max_examples=60)
@given(st.lists(forests(), min_size=1, max_size=4), st.integers(0, 3))
def test_derived_matrices_equal_the_slow_twin(trees: list[list[int]], extra: int) -> None:
    check(trees, max(map(len, trees)) + extra)


@pytest.mark.parametrize("size", [128, 255, 256, 300])
def test_a_chain_keeps_its_longest_path(size: int) -> None:
    parents = torch.arange(-1, size - 1, dtype=torch.int32)[None]
    distance, depth, ancestor = derived(parents, torch.tensor([size]))
    assert distance.dtype == (torch.uint8 if size < 256 else torch.int32)
    assert int(distance[0, 0, -1]) == int(depth[0, -1]) == size - 1
    assert int(ancestor.sum()) == size * (size + 1) // 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("width", [128, 300])
def test_the_gpu_derives_what_the_slow_twin_does(width: int) -> None:
    rng = np.random.default_rng(0)
    trees = [[-1, *(int(rng.integers(-1, node)) for node in range(1, width))] for _ in range(3)]
    check([*trees, list(range(-1, width - 1))], width, "cuda")
