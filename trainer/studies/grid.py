"""Points of a study: a recipe with each combination of some settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from syntax.errors import SpecError
from syntax.fingerprint import fingerprint
from syntax.lists import listed
from syntax.strict_json import parse_json
from trainer.options import Recipe
from trainer.options.settings import setting_of, with_settings
from trainer.results import RESULT, is_result_of

_LONGEST: Final = 100
"""Characters of a folder's name; file systems take 255 bytes."""


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of settings, such as ``("max_distance=2", "dropout=0.1")``.

    Attributes:
        folder: Has a folder ``seedN`` for each run.
    """

    settings: tuple[str, ...]
    recipe: Recipe
    folder: Path

    @property
    def name(self) -> str:
        return ", ".join(self.settings)

    def run(self, seed: int) -> StudyRun:
        recipe = with_settings(self.recipe, [f"training.seed={seed}"])
        return StudyRun(self, seed, recipe, self.folder / f"seed{seed}")


@dataclass(frozen=True, slots=True)
class StudyRun:
    """A point with a seed, and the folder of its run."""

    point: Point
    seed: int
    recipe: Recipe
    folder: Path

    def is_done(self) -> bool:
        """True if the folder holds the run's result; one of another recipe is refused."""
        if not (self.folder / RESULT).exists():
            return False
        if not is_result_of(self.folder, self.recipe):
            raise SpecError(
                f"{self.folder} holds a run of {self.point.name} with other options beside these; "
                "name another folder with `output=`, or delete the run"
            )
        return True


def points_of(recipe: Recipe, settings: Iterable[str], folder: Path) -> list[Point]:
    """All combinations of settings that have several values (`values_of`), in their order."""
    points = [
        Point(chosen, with_settings(recipe, chosen), folder / folder_name(chosen))
        for chosen in product(*(values_of(setting) for setting in settings))
    ]
    for at, point in enumerate(points):
        for other in points[:at]:
            if point.recipe == other.recipe:
                raise SpecError(
                    f"{other.name} and {point.name} make the same recipe; leave one out"
                )
    return points


def values_of(setting: str) -> list[str]:
    """Settings of one value each.

    Values are the items of a JSON list, or a list as people write it. A value that is itself a
    list, or has commas, is JSON or in double quotes.

    >>> values_of("model.gat_layers=1,2")
    ['model.gat_layers=1', 'model.gat_layers=2']
    >>> values_of('lang="en,fr",de'), values_of("syntax_layers=[0, 1],[2]")
    (['lang=en,fr', 'lang=de'], ['syntax_layers=[0, 1]', 'syntax_layers=[2]'])
    """
    key, equals, text = setting.partition("=")
    if not equals:
        raise SpecError(f"the setting {setting!r} has no '='; give `key=value,value`")
    try:
        values = parse_json(f"[{text}]") or listed(text)
    except ValueError:
        values = listed(text)
    return [setting_of(key.strip(), value) for value in values]


def folder_name(settings: Sequence[str]) -> str:
    """A name that a file system takes; a hash tells apart what it would make alike.

    >>> folder_name(["gat_layers=1", "pooling=mean"])
    'gat_layers=1,pooling=mean'
    >>> folder_name(["encoder=./mbert"])
    'encoder=._mbert-0c1de3c5'
    """
    name = ",".join(settings)
    plain = re.sub(r"[^\w.,=+-]", "_", name)[:_LONGEST]
    return plain if plain == name else f"{plain}-{fingerprint([name])[:8]}"
