"""A sweep: settings of a recipe, of which the dev scores choose one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from syntax.errors import SpecError
from trainer.environment import require_training
from trainer.evaluation.tables import MEAN, SeedScores
from trainer.options import Recipe
from trainer.results import FinishedRun, table, write_json
from trainer.studies.grid import Point, points_of
from trainer.studies.runs import (
    Training,
    cells_of,
    languages_in,
    mean_cell,
    score_missing,
    shown,
    train_missing,
)

if TYPE_CHECKING:
    from featurestore import FeatureStore


@dataclass(frozen=True, slots=True)
class SweptPoint:
    """One combination of settings.

    Attributes:
        scores: Headline metric on dev, by seed.
        failed: Reasons why seeds have no score; such a point is never chosen.
    """

    settings: tuple[str, ...]
    folder: str
    scores: Mapping[int, float]
    failed: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The outcome of a sweep.

    Attributes:
        points: In the order of the settings.
        chosen: Place of the point with the best mean over seeds, the first of several.
        test: Scores of the chosen point by language, and their mean if there are several.
    """

    recipe: str
    metric: str
    split: str
    points: Sequence[SweptPoint]
    chosen: int
    test: Mapping[str, SeedScores]

    def to_json(self) -> dict[str, Any]:
        test = {lang: cell.scores for lang, cell in self.test.items()}
        return {**asdict(self), "test": test}

    def title(self) -> str:
        return f"{self.recipe}: chosen by dev {self.metric}"

    def header(self) -> tuple[str, ...]:
        columns = (f"{self.split} {lang}" for lang in self.test)
        return ("", "settings", f"dev {self.metric}", *columns)

    def rows(self) -> list[tuple[str, ...]]:
        """The points as text; the chosen one has a mark, and alone a score on the split."""
        rows = []
        for at, point in enumerate(self.points):
            dev = "failed" if point.failed else shown(SeedScores(point.scores))
            test = [shown(cell) if at == self.chosen else "" for cell in self.test.values()]
            rows.append(("*" * (at == self.chosen), ", ".join(point.settings), dev, *test))
        return rows

    def notes(self) -> list[str]:
        return [
            f"{point.folder}, seed {seed}: {reason}"
            for point in self.points
            for seed, reason in point.failed.items()
        ]

    def markdown(self) -> str:
        lines = table(self.header(), self.rows()).replace("| * |", r"| \* |")
        notes = "\n".join(f"* {note}" for note in self.notes())
        return "\n\n".join(filter(None, [f"# {self.title()}", lines, notes])) + "\n"


def sweep(
    recipe: Recipe,
    settings: Iterable[str],
    seeds: Sequence[int],
    store: FeatureStore,
    folder: Path,
    split: str = "test",
    langs: Sequence[str] = (),
    **how: Unpack[Training],
) -> Sweep:
    """Train a recipe with each combination of settings and each seed, and score the best point.

    Settings are as `trainer.studies.grid.values_of` reads them. The point with the best mean on dev
    is scored on the split, in all its languages by default. Options are those of `Training`.
    Writes ``sweep.json`` and ``sweep.md``.
    """
    require_training()
    points = points_of(recipe, settings, folder)
    langs = languages_in(store, recipe, langs, split)
    failed = train_missing(points, seeds, store, **how)
    swept = [_swept(point, seeds, failed) for point in points]
    whole = [at for at, point in enumerate(swept) if not point.failed]
    if not whole:
        reasons = "".join(f"\n  {one}: {reason}" for one, reason in failed.items())
        raise SpecError(f"every point has a run that failed, so none is chosen:{reasons}")
    chosen = max(whole, key=lambda at: SeedScores(swept[at].scores).mean)
    best = points[chosen]
    score_missing([best], seeds, store, split, langs, **how)
    test = cells_of(best, seeds, split, langs)
    if len(test) > 1:
        test[MEAN] = mean_cell(list(test.values()))
    metric = FinishedRun.read(best.run(seeds[0]).folder).metric
    found = Sweep(recipe.name, metric, split, swept, chosen, test)
    write_json(folder / "sweep.json", found.to_json())
    (folder / "sweep.md").write_text(found.markdown(), "utf-8")
    return found


def _swept(point: Point, seeds: Sequence[int], failed: Mapping[Path, str]) -> SweptPoint:
    scores: dict[int, float] = {}
    reasons: dict[int, str] = {}
    for run in map(point.run, dict.fromkeys(seeds)):
        if run.folder in failed:
            reasons[run.seed] = failed[run.folder]
        elif (score := FinishedRun.read(run.folder).score) is None:
            reasons[run.seed] = "its dev score is not a number"
        else:
            scores[run.seed] = score
    return SweptPoint(point.settings, str(point.folder), scores, reasons)
