from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestore.tables.encode.blobs import (
    decode_ancestor,
    decode_depth,
    decode_distance,
    many_matrix_blobs,
    matrix_blobs,
)
from syntax.errors import StoreFormatError


@st.composite
def forests(draw) -> np.ndarray:
    """Heads of a random forest with isolated pieces, in a random order of nodes."""
    size = draw(st.integers(0, 30))
    order = draw(st.permutations(range(size)))
    heads = np.full(size, -1, np.int32)
    for position, node in enumerate(order):
        choice = draw(st.integers(-2, position - 1))
        heads[node] = choice if choice < 0 else order[choice]
    while (bad := np.flatnonzero((heads >= 0) & (heads[np.maximum(heads, 0)] == -2))).size:
        heads[bad] = -1  # nothing hangs from an isolated piece
    return heads


def walk(heads: np.ndarray) -> tuple[list, list, list]:
    """Distance, depth and ancestors by walking up from each node."""
    paths = []
    for node in range(len(heads)):
        path = [node]
        while heads[path[-1]] >= 0:
            path.append(int(heads[path[-1]]))
        paths.append(path)
    distance = [
        [min((a.index(x) + b.index(x) for x in a if x in b), default=None) for b in paths]
        for a in paths
    ]
    ancestor = [[other in path for other in range(len(heads))] for path in paths]
    return distance, [len(path) - 1 for path in paths], ancestor


@given(forests())
def test_blobs_hold_what_walking_the_tree_finds(heads) -> None:
    blobs = matrix_blobs(heads)
    distance, depth, ancestor = walk(heads)
    found = decode_distance(blobs[0])
    assert [[None if x == 255 else x for x in row] for row in found.tolist()] == distance
    assert decode_depth(blobs[1], len(heads)).tolist() == depth
    assert decode_ancestor(blobs[2]).tolist() == ancestor


@pytest.mark.parametrize("size", range(40))
def test_sizes_are_recognised(size) -> None:
    assert decode_distance(bytes(size * size)).shape == (size, size)
    assert decode_distance(bytes(2 * size * size)).shape == (size, size)
    assert decode_ancestor(bytes(size * -(-size // 8))).shape == (size, size)


def test_truncated_blobs_are_refused() -> None:
    for decode, blob in ((decode_distance, bytes(3)), (decode_ancestor, bytes(19))):
        with pytest.raises(StoreFormatError, match="no square matrix"):
            decode(blob)
    with pytest.raises(StoreFormatError, match="not about 4 pieces"):
        decode_depth(bytes(5), 4)


@given(st.lists(forests(), max_size=20), st.data())
def test_many_segments_have_the_blobs_of_each(segments, data) -> None:
    order = data.draw(st.lists(st.sampled_from(range(len(segments))))) if segments else []
    chosen = [segments[n] for n in order]
    assert many_matrix_blobs(chosen) == [matrix_blobs(head) for head in chosen]


def test_a_long_path_widens_only_its_own_segment() -> None:
    chain = np.arange(-1, 299, dtype=np.int32)
    flat = np.full(300, 0, np.int32)
    flat[0] = -1
    assert many_matrix_blobs([chain, flat]) == [matrix_blobs(chain), matrix_blobs(flat)]
    (distance, depth, _), (narrow, *_) = matrix_blobs(chain), matrix_blobs(flat)
    assert (len(distance), len(narrow)) == (2 * 300 * 300, 300 * 300)
    assert decode_distance(distance)[0, 299] == 299
    assert decode_depth(depth, 300).tolist() == list(range(300))
