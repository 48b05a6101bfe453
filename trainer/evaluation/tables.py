"""Scores of several systems by language, with mean and deviation over seeds: tables for papers.

Runs that differ in nothing but their seed are one system. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

from syntax.errors import SpecError, UnknownNameError
from syntax.registry import unknown_name
from syntax.strict_json import strict_json
from trainer.evaluation.compare import EVERY, Line, compare_systems, read_system
from trainer.results import RESULT, read_json, read_result

MEAN: Final = "mean"

ByColumn = dict[str, dict[int, float]]


@dataclass(frozen=True, slots=True)
class SeedScores:
    """The scores of one system in one language, or their mean over all languages.

    Attributes:
        scores: By seed.
        test: Difference from the baseline system; None of that system, and where there is no test.
    """

    scores: Mapping[int, float]
    test: Line | None = None

    @property
    def mean(self) -> float:
        return fmean(self.scores.values())

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over seeds; None of one."""
        return stdev(self.scores.values()) if len(self.scores) > 1 else None


@dataclass(slots=True)
class ScoreTable:
    """Systems by languages.

    Attributes:
        columns: The languages, and `MEAN` where there are several.
        rows: By system, the cells that are there, by column.
        unlearned: Scores of the task's baseline, such as the majority class, by column.
        baseline: Name of the system that the others are tested against.
        notes: Missing scores and tests, and why.
    """

    dataset: str
    split: str
    metric: str
    columns: list[str]
    rows: dict[str, dict[str, SeedScores]] = field(default_factory=dict)
    unlearned: dict[str, float] = field(default_factory=dict)
    unlearned_name: str = ""
    baseline: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def seeds(self) -> list[int]:
        cells = [cell for row in self.rows.values() for cell in row.values()]
        return sorted({seed for cell in cells for seed in cell.scores})


def score_table(
    folders: Sequence[Path],
    split: str = "test",
    metric: str | None = None,
    baseline: str | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> ScoreTable:
    """The table of all finished runs in some folders; ``parsebank evaluate`` has scored them.

    Folders are runs, or have runs at any depth. The metric is the headline by default. The
    baseline, which the others are tested against, is a system's name in the table, or the folder of
    one of its runs; without one there are no tests.
    """
    systems = systems_of(folders)
    notes: list[str] = []
    found = {
        name: {at: one for at, run in runs.items() if (one := _evaluation(run, split, notes))}
        for name, runs in systems.items()
    }
    every = [one for of_seeds in found.values() for one in of_seeds.values()]
    if not every:
        first = next(run for runs in systems.values() for run in runs.values())
        raise SpecError(
            f"no run was scored on {split}; run: parsebank evaluate {first} --split {split}"
        )
    for what in ("dataset", "metric"):
        if len(names := sorted({one[what] for one in every})) > 1:
            raise SpecError(f"the runs are of the {what}s {', '.join(names)}; make a table of each")
    chosen = metric or every[0]["metric"]
    langs = sorted({lang for one in every for lang in one["languages"]})
    columns = [*langs, *([MEAN] if len(langs) > 1 else [])]
    table = ScoreTable(every[0]["dataset"], split, chosen, columns, notes=notes)
    for name, evaluations in found.items():
        scores = _scores(evaluations, langs, chosen)
        notes += _missing(name, scores, systems[name])
        table.rows[name] = {column: SeedScores(of) for column, of in scores.items() if of}
    if chosen == every[0]["metric"]:
        _add_unlearned(table, every, langs)
    if baseline is not None:
        table.baseline = _system_named(baseline, systems)
        for name in table.rows:
            if name != table.baseline:
                _add_tests(table, name, systems, {"resamples": resamples, "seed": seed})
    return table


def systems_of(folders: Sequence[Path]) -> dict[str, dict[int, Path]]:
    """The finished runs in some folders, by system and seed.

    A system is named as its recipe. Where several have the same recipe, the options in which they
    differ follow: ``xnli (model.use_syntax=false)``.
    """
    grouped: dict[str, dict[int, Path]] = {}
    recipes: dict[str, dict[str, str]] = {}
    found: list[Path] = []
    for folder in folders:
        inside = sorted(path.parent for path in folder.rglob(RESULT))
        if not inside:
            raise SpecError(
                f"there is no finished run in {folder}; give folders of parsebank train"
            )
        found += inside
    for run in dict.fromkeys(found):
        options = dict(_flat(read_result(run)["recipe"]))
        seed = int(options.pop("training.seed"))
        key = strict_json(options)
        recipes[key], runs = options, grouped.setdefault(key, {})
        if seed in runs:
            raise SpecError(
                f"{runs[seed]} and {run} are runs of one recipe and of the seed {seed}; leave one "
                "out"
            )
        runs[seed] = run
    return {
        _system_name(recipes[key], recipes): dict(sorted(runs.items()))
        for key, runs in grouped.items()
    }


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The options of a recipe by their dotted names, as JSON text."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _flat(item, f"{key}.{name}" if key else name)
    else:
        yield key, strict_json(value)


def _system_name(options: Mapping[str, str], recipes: Mapping[str, Mapping[str, str]]) -> str:
    name = options["name"].strip('"')
    alike = [other for other in recipes.values() if other["name"] == options["name"]]
    keys = dict.fromkeys(key for other in alike for key in other)
    differing = [
        f"{key}={options[key]}"
        for key in keys
        if key in options and len({other.get(key) for other in alike}) > 1
    ]
    return f"{name} ({', '.join(differing)})" if differing else name


def _system_named(name: str, systems: Mapping[str, Mapping[int, Path]]) -> str:
    if name in systems:
        return name
    folder = Path(name).resolve()
    found = [
        system
        for system, runs in systems.items()
        if any(folder in (run.resolve(), *run.resolve().parents) for run in runs.values())
    ]
    if not found:
        raise unknown_name("system", name, systems)
    if len(found) > 1:
        raise SpecError(f"{name} has runs of several systems: {', '.join(found)}; name one")
    return found[0]


def _evaluation(run: Path, split: str, notes: list[str]) -> dict[str, Any] | None:
    path = run / f"evaluation-{split}.json"
    if not path.exists():
        notes.append(f"{run} was not scored on {split}: parsebank evaluate {run} --split {split}")
        return None
    return read_json(path, f"{path} is gone")


def _scores(
    evaluations: Mapping[int, dict[str, Any]], langs: Sequence[str], metric: str
) -> ByColumn:
    """Scores by column and seed; a seed that lacks a language has no mean."""
    scores: ByColumn = {lang: {} for lang in langs}
    for seed, evaluation in evaluations.items():
        for lang, content in evaluation["languages"].items():
            # A score that is not a number is null in JSON.
            numbers = {
                name: one
                for name, one in content.items()
                if one is None or isinstance(one, int | float)
            }
            if metric not in numbers:
                raise unknown_name("metric of these evaluations", metric, numbers)
            if (score := numbers[metric]) is not None:
                scores[lang][seed] = float(score)
    if len(langs) > 1:
        whole = [seed for seed in evaluations if all(seed in scores[lang] for lang in langs)]
        scores[MEAN] = {seed: fmean(scores[lang][seed] for lang in langs) for seed in whole}
    return scores


def _missing(name: str, scores: ByColumn, runs: Mapping[int, Path]) -> list[str]:
    notes = []
    for column, found in scores.items():
        lacking = [str(seed) for seed in runs if seed not in found]
        if lacking and column != MEAN:
            notes.append(f"{name} has no score in {column} of the seeds {', '.join(lacking)}")
    return notes


def _add_unlearned(
    table: ScoreTable, evaluations: Sequence[dict[str, Any]], langs: Sequence[str]
) -> None:
    for evaluation in evaluations:
        for lang, numbers in evaluation["languages"].items():
            if one := numbers.get("baseline"):
                table.unlearned_name = one["name"]
                table.unlearned.setdefault(lang, one["score"])
    if len(langs) > 1 and all(lang in table.unlearned for lang in langs):
        table.unlearned[MEAN] = fmean(table.unlearned[lang] for lang in langs)


def _add_tests(
    table: ScoreTable,
    name: str,
    systems: Mapping[str, Mapping[int, Path]],
    options: Mapping[str, Any],
) -> None:
    """Test one system against the baseline system on the seeds that both have in every column."""
    row, base = table.rows[name], table.rows[table.baseline or ""]
    seeds = [
        seed
        for seed in systems[name]
        if any(seed in cell.scores for cell in row.values())
        and any(seed in cell.scores for cell in base.values())
    ]
    if not seeds:
        table.notes.append(f"{name} and {table.baseline} share no seed, so they are not tested")
        return
    try:
        ours, theirs = (
            read_system({f"seed{seed}": systems[one][seed] for seed in seeds}, table.split)
            for one in (name, table.baseline or "")
        )
        lines = compare_systems(ours, theirs, [table.metric], **options)
    except (SpecError, UnknownNameError) as error:
        table.notes.append(f"{name} is not tested against {table.baseline}: {error}")
        return
    tests = {MEAN if line.lang == EVERY else line.lang: line for line in lines}
    # A mean over some of the languages would be another one than the table's.
    whole = set(table.columns) <= tests.keys()
    if any(set(cell.scores) != set(seeds) for cell in [*row.values(), *base.values()]):
        listed = ", ".join(map(str, seeds))
        table.notes.append(f"{name} is tested against {table.baseline} on the seeds {listed} alone")
    for column, line in tests.items():
        if column in row and (column != MEAN or whole):
            row[column] = SeedScores(row[column].scores, line)
