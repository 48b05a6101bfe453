"""Transfer from each language of a dataset to each: sources by targets, beside word order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from syntax.errors import SpecError
from trainer.environment import require_training
from trainer.evaluation.tables import SeedScores
from trainer.evaluation.transfer import Pair
from trainer.options import Recipe
from trainer.results import FinishedRun, table, write_json
from trainer.studies.grid import points_of
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
class LanguageMatrix:
    """Scores by source and target.

    Attributes:
        cells: By source and target; a source whose runs all failed has none.
        distances: Of the word orders of source and target, for pairs of two languages
            (`featurestore.reports.word_order`).
        correlation: Pearson's and Spearman's of distance and loss over these pairs, the loss being
            the source's own score less that of the target. None of fewer than three pairs. Pairs
            share languages, so that no interval is given.
        notes: What is missing, and why.
    """

    dataset: str
    metric: str
    split: str
    sources: Sequence[str]
    targets: Sequence[str]
    cells: Mapping[Pair, SeedScores]
    distances: Mapping[Pair, float]
    correlation: tuple[float, float] | None
    notes: Sequence[str]

    def as_source(self, source: str) -> SeedScores | None:
        """Mean over the other languages of a model that was trained on one."""
        return self._mean([(source, target) for target in self.targets])

    def as_target(self, target: str) -> SeedScores | None:
        """Mean in one language of the models that were trained on the others."""
        return self._mean([(source, target) for source in self.sources])

    def _mean(self, pairs: Sequence[Pair]) -> SeedScores | None:
        found = [self.cells[pair] for pair in pairs if pair in self.cells and pair[0] != pair[1]]
        return mean_cell(found) if found else None

    def to_json(self) -> dict[str, Any]:
        """Every number; ``pairs[a][b]`` has the scores in ``b`` of the model of ``a``, by seed."""
        pairs: dict[str, dict[str, Any]] = {source: {} for source in self.sources}
        for (a, b), cell in self.cells.items():
            pairs[a][b] = {"scores": cell.scores, "distance": self.distances.get((a, b))}
        means = {
            "as_source": {lang: self.as_source(lang) for lang in self.sources},
            "as_target": {lang: self.as_target(lang) for lang in self.targets},
        }
        return {
            "dataset": self.dataset,
            "metric": self.metric,
            "split": self.split,
            "pairs": pairs,
            **{
                name: {lang: cell and cell.mean for lang, cell in of.items()}
                for name, of in means.items()
            },
            "pearson": self.correlation and self.correlation[0],
            "spearman": self.correlation and self.correlation[1],
            "notes": list(self.notes),
        }

    def title(self) -> str:
        return f"{self.dataset}, {self.split}: {self.metric}"

    def header(self) -> tuple[str, ...]:
        return ("source / target", *self.targets, "As-source")

    def rows(self) -> list[tuple[str, ...]]:
        rows = [
            (a, *(shown(self.cells.get((a, b))) for b in self.targets), shown(self.as_source(a)))
            for a in self.sources
        ]
        return [*rows, ("As-target", *(shown(self.as_target(b)) for b in self.targets), "")]

    def told(self) -> list[str]:
        """Lines below the table: the correlation, and what is missing."""
        if self.correlation is None:
            return list(self.notes)
        pairs = sum(pair in self.cells for pair in self.distances)
        found = (
            f"word order distance and loss over {pairs} pairs: Pearson {self.correlation[0]:.2f}, "
            f"Spearman {self.correlation[1]:.2f}"
        )
        return [found, *self.notes]

    def markdown(self) -> str:
        notes = "\n".join(f"* {note}" for note in self.told())
        return f"# {self.title()}\n\n{table(self.header(), self.rows())}\n\n{notes}\n"


def language_matrix(
    recipe: Recipe,
    seeds: Sequence[int],
    store: FeatureStore,
    folder: Path,
    split: str = "test",
    sources: Sequence[str] = (),
    targets: Sequence[str] = (),
    **how: Unpack[Training],
) -> LanguageMatrix:
    """Train a recipe on each source with each seed, and score each model on each target.

    Sources are by default all languages with both splits that the recipe trains with, targets all
    of the split. Options are those of `trainer.studies.runs.Training`. Writes ``matrix.json``
    and ``matrix.md``.
    """
    require_training()
    data = recipe.data
    sources = languages_in(store, recipe, sources, data.train_split, data.dev_split)
    targets = languages_in(store, recipe, targets, split)
    points = {lang: points_of(recipe, [f"data.lang={lang}"], folder)[0] for lang in sources}
    failed = train_missing(list(points.values()), seeds, store, **how)
    score_missing(list(points.values()), seeds, store, split, targets, **how)
    cells = {
        (source, target): cell
        for source, point in points.items()
        for target, cell in cells_of(point, seeds, split, targets).items()
    }
    notes = [f"{one}: {reason}" for one, reason in failed.items()]
    if not cells:
        reasons = "".join(f"\n  {note}" for note in notes)
        raise SpecError(f"no run has a score, so there is no matrix:{reasons}")
    distances = _distances(store, [pair for pair in cells if pair[0] != pair[1]], notes)
    done = next(run for point in points.values() for run in map(point.run, seeds) if run.is_done())
    metric = FinishedRun.read(done.folder).metric
    correlation = _correlation(cells, distances, notes)
    facts = (data.dataset, metric, split, sources, targets)
    found = LanguageMatrix(*facts, cells, distances, correlation, notes)
    write_json(folder / "matrix.json", found.to_json())
    (folder / "matrix.md").write_text(found.markdown(), "utf-8")
    return found


def _distances(store: FeatureStore, pairs: Sequence[Pair], notes: list[str]) -> dict[Pair, float]:
    """Distances of word order over the published types; what has none is noted."""
    from featurestore.reports.word_order import word_order

    try:
        order = word_order(store, types="published", missing="as_published")
        distances, places = order.distances(), {lang: at for at, lang in enumerate(order.langs)}
    except SpecError as error:
        notes.append(f"no distances of word order: {error.message}")
        return {}
    unknown = sorted({lang for pair in pairs for lang in pair} - places.keys())
    if unknown:
        notes.append(f"too few trees for a word order of {', '.join(unknown)}")
    known = [pair for pair in pairs if places.keys() >= set(pair)]
    return {(a, b): float(distances[places[a], places[b]]) for a, b in known}


def _correlation(
    cells: Mapping[Pair, SeedScores], distances: Mapping[Pair, float], notes: list[str]
) -> tuple[float, float] | None:
    from trainer.evaluation.word_order import correlate

    pairs = [pair for pair in distances if (pair[0], pair[0]) in cells]
    losses = [cells[a, a].mean - cells[a, b].mean for a, b in pairs]
    found = correlate([distances[pair] for pair in pairs], losses)
    if found is None:
        notes.append(
            f"no correlation with word order: {len(pairs)} pairs have a distance and a loss, and "
            "three that differ are needed"
        )
    return found
