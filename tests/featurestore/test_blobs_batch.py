"""Blobs of many segments at once equal the blobs of each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from featurestore.tables.encode.blobs import many_matrix_blobs, matrix_blobs


@st.composite
def heads(draw: st.DrawFn) -> np.ndarray:
    """An attach tree over up to 30 pieces, with isolated pieces and several roots."""
    size = draw(st.integers(0, 30))
    choices = [draw(st.integers(-2, piece - 1)) for piece in range(size)]
    return np.array(choices, np.int32)


@given(st.lists(heads(), max_size=20), st.data())
def test_many_segments_have_the_blobs_of_each(
    segments: list[np.ndarray], data: st.DataObject
) -> None:
    order = data.draw(st.lists(st.sampled_from(range(len(segments))))) if segments else []
    chosen = [segments[n] for n in order]
    assert many_matrix_blobs(chosen) == [matrix_blobs(head) for head in chosen]


def test_a_long_path_widens_only_its_own_segment() -> None:
    chain = np.arange(-1, 299, dtype=np.int32)
    flat = np.full(300, 0, np.int32)
    flat[0] = -1
    (wide, *_), (narrow, *_) = many_matrix_blobs([chain, flat])
    assert (len(wide), len(narrow)) == (2 * 300 * 300, 300 * 300)
    assert many_matrix_blobs([chain, flat]) == [matrix_blobs(chain), matrix_blobs(flat)]
