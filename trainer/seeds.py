"""Several runs of one recipe that differ in their seed: mean and deviation of their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from syntax.errors import SpecError
from trainer.results import RESULT, read_result, table, write_json


@dataclass(frozen=True, slots=True)
class SeedSummary:
    """Headline scores on dev by seed; ``deviation`` is of the sample, 0 of one score."""

    recipe: str
    metric: str
    scores: Mapping[int, float]
    mean: float
    deviation: float
    runs: Mapping[int, str]


def runs_of(folder: Path) -> dict[str, Path]:
    """The finished runs in a folder, by seed as in ``seed0``; a run itself goes by ``""``."""
    if (folder / RESULT).exists():
        return {"": folder}
    found = {path.parent.name: path.parent for path in folder.glob(f"seed*/{RESULT}")}
    if not found:
        read_result(folder)
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def summarise_seeds(runs: Mapping[int, Path]) -> SeedSummary:
    results = {seed: read_result(folder) for seed, folder in runs.items()}
    first = next(iter(results.values()))
    scores = {seed: _score(result, runs[seed]) for seed, result in results.items()}
    return SeedSummary(
        recipe=first["recipe"]["name"],
        metric=first["metric"],
        scores=scores,
        mean=fmean(scores.values()),
        deviation=stdev(scores.values()) if len(scores) > 1 else 0.0,
        runs={seed: str(folder) for seed, folder in runs.items()},
    )


def _score(result: dict[str, Any], folder: Path) -> float:
    metric = result["metric"]
    if result[metric] is None:
        raise SpecError(
            f"the run in {folder} has no number for {metric}, so there is no mean with it; train "
            "it with other options, or leave its seed out"
        )
    return float(result[metric])


def write_summary(summary: SeedSummary, output: Path) -> None:
    write_json(output / "seeds.json", asdict(summary))
    rows = [(str(seed), f"{score:.4f}") for seed, score in summary.scores.items()]
    rows.append(("mean", f"{summary.mean:.4f} ± {summary.deviation:.4f}"))
    shown = table(("seed", f"dev {summary.metric}"), rows)
    (output / "seeds.md").write_text(f"# {summary.recipe}\n\n{shown}\n", "utf-8")
