"""Settings of several values, the points that they make, and their folders."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.errors import SpecError
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.studies.grid import folder_name, points_of, values_of


def test_points_are_all_combinations_in_order(tmp_path) -> None:
    grid = ["batch_size=4,8", "model.dropout=0.1,0.2,0.3", "max_steps=2"]
    points = points_of(RECIPES["sample"](), grid, tmp_path)
    expected = [
        (f"batch_size={size}", f"model.dropout={dropout}", "max_steps=2")
        for size, dropout in product((4, 8), (0.1, 0.2, 0.3))
    ]
    assert [point.settings for point in points] == expected
    for point in points:
        assert point.recipe == with_settings(RECIPES["sample"](), point.settings)
        assert point.folder == tmp_path / ",".join(point.settings)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a=1,2.5", ["a=1", "a=2.5"]),
        ("a=mean,1", ["a=mean", "a=1"]),
        ("a=true,null", ["a=true", "a=null"]),
        ('lang="en,fr",de', ["lang=en,fr", "lang=de"]),
        ("layers=[0,1],[2]", ["layers=[0, 1]", "layers=[2]"]),
        ("data.samplers=phrase(way=lr_sib, negatives=5),tree", None),
        ('objectives=[{"name": "x", "w": 1}]', ['objectives=[{"name": "x", "w": 1}]']),
    ],
)
def test_values_are_json_or_a_list_as_people_write_it(given: str, expected) -> None:
    if expected is None:
        expected = ["data.samplers=phrase(way=lr_sib, negatives=5)", "data.samplers=tree"]
    assert values_of(given) == expected


@settings(max_examples=30)
@given(st.lists(st.lists(st.text(min_size=1), min_size=1, max_size=3), min_size=2, unique_by=tuple))
def test_folders_of_different_settings_differ_and_any_file_system_takes_them(drawn) -> None:
    # A comma ends a setting in names: what has one is read from JSON, and gets a hash.
    points = [[f"k={value.replace(',', ';')}" for value in one] for one in drawn]
    names = {folder_name(one) for one in points}
    assert len(names) == len({tuple(one) for one in points})
    assert all(Path(name).name == name and len(name) <= 120 for name in names)


def test_settings_that_make_no_grid_are_refused(tmp_path) -> None:
    recipe = RECIPES["sample"]()
    for grid, message in (
        (["batch_size"], "has no '='"),
        (["batch_size=4,"], "empty item"),
        (["batch_size="], "empty item"),
        (["batch_size=4,x"], "batch_size cannot be 'x'"),
        (["model.dropout=0.1,1e-1"], "dropout=0.1 and model.dropout=0.1 make the same recipe"),
    ):
        with pytest.raises(SpecError, match=message):
            points_of(recipe, grid, tmp_path)
