"""Matrices by name: settings in brackets, columns they read, padding."""

from __future__ import annotations

import numpy as np
import pytest

from syntax.batches import AssemblySpec
from syntax.errors import SpecError, UnknownNameError
from syntax.matrices import (
    COLUMNS,
    MATRICES,
    UNREACHABLE,
    MatrixRegistry,
    sla_mask,
    tree_distance,
    windowed_distance,
)

DOG = [1, 2, -1, 4, 2]


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("sla_mask", "sla_mask.v1"),
        ("sla_mask()", "sla_mask.v1"),
        ("sla_mask.v1(threshold=4)", "sla_mask.v1(threshold=4)"),
        (
            "sla_mask( variant=as_released; threshold=4 )",
            "sla_mask.v1(threshold=4,variant=as_released)",
        ),
        ("sla_mask(punctuation=true)", "sla_mask.v1(punctuation=true)"),
        ("gate_distance(keep=-1)", "gate_distance.v1(keep=-1)"),
    ],
)
def test_full_names_have_version_and_settings_in_order(name: str, full: str) -> None:
    assert MATRICES.resolve(name) == MATRICES.resolve(full) == full
    assert name in MATRICES
    assert AssemblySpec(matrices=(name,)).matrices == (name,)


def test_settings_change_the_matrix() -> None:
    np.testing.assert_array_equal(
        MATRICES["sla_mask(threshold=1,variant=as_released)"](DOG),
        sla_mask(DOG, threshold=1, variant="as_released"),
    )
    released = MATRICES["sla_distance(variant=as_released)"](DOG)
    assert (released != windowed_distance(DOG)).any()
    assert MATRICES["distance"] is tree_distance


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sla_mask(treshold=4)", "has no setting treshold=4; its settings.*: threshold=3, "),
        ("sla_mask(threshold=four)", "has no setting threshold=four"),
        ("sla_mask(threshold=true)", "has no setting threshold=true"),
        ("sla_mask(threshold)", "has no setting threshold=;"),
        (f"sla_mask(threshold={'9' * 5000})", "has no setting threshold=999"),
        ("sla_mask(upos=1)", "has no setting upos=1"),
        ("distance(threshold=4)", "its settings and their defaults are: none"),
        ("sla_mask(variant=released)", "variant is 'released'; it is one of as_published"),
        ("sla_mask(threshold=-1)", "threshold is -1; distances begin at 0"),
        ("gate_weights(threshold=0)", "threshold is 0; it must lie between 1 and 254"),
    ],
)
def test_unknown_settings_are_refused(name: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        AssemblySpec(matrices=(name,))


@pytest.mark.parametrize("name", ["sla_masks", "sla_mask(threshold=4", "(threshold=4)", ""])
def test_unknown_names_are_refused(name: str) -> None:
    assert name not in MATRICES
    with pytest.raises(UnknownNameError, match="unknown matrix"):
        AssemblySpec(matrices=(name,))


def test_columns_are_what_the_function_asks_for() -> None:
    assert MATRICES.columns("distance") == ()
    assert MATRICES.columns("sla_mask(threshold=4)") == ("source", "special", "upos")
    assert MATRICES.columns("lca") == ("source", "column")
    assert MATRICES.columns("gate_distance(keep=0)") == ("source", "marks")
    assert {column for name in MATRICES for column in MATRICES.columns(name)} == set(COLUMNS)


def test_padding_is_of_the_matrix() -> None:
    assert MATRICES.padding("gate_distance(keep=0)") == UNREACHABLE
    assert MATRICES.padding("lca") == -1
    assert MATRICES.padding("sla_mask.v1(threshold=4)") == 0


def test_versions_of_a_matrix_keep_their_padding() -> None:
    registry = MatrixRegistry()
    registry.add("far.v1", tree_distance)
    registry.add("far.v2", tree_distance, padding=UNREACHABLE)
    assert (registry.padding("far.v1"), registry.padding("far")) == (0, UNREACHABLE)
    with pytest.raises(SpecError, match="registered twice"):
        registry.add("far.v1", tree_distance)
