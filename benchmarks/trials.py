"""What the small experiments share: commands whose results a folder keeps, results by condition."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from trainer.metrics.significance import difference

DATA: Final = Path(os.environ.get("PARSEBANK_DATA", "data"))
RESULTS: Final = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Trial:
    """Commands over one store; what is done is not done again, and what was cut off goes on.

    Attributes:
        work: Folder of the store and of all runs.
    """

    work: Path

    def command(self, *arguments: str) -> None:
        """Run a parsebank command."""
        print("$ parsebank", *arguments, flush=True)
        subprocess.run((str(Path(sys.executable).parent / "parsebank"), *arguments), check=True)

    def treebanks(self, folders: Iterable[str]) -> Path:
        """A folder with the files of several treebanks; Korean's train split is of 2022."""
        together = self.work / "treebanks"
        together.mkdir(parents=True, exist_ok=True)
        for folder in folders:
            for file in sorted((DATA / "treebanks" / folder).rglob("*.conllu")):
                link = together / file.name.replace(".2022-09-14", "")
                if not link.exists():
                    link.symlink_to(file.resolve())
        return together

    def backfill(self, name: str, *arguments: str) -> None:
        """Fill a dataset."""
        report = self.work / f"{name}.json"
        if not report.exists():
            where = ("--store", str(self.work / "store"), "--report", str(report))
            self.command("backfill", *arguments, "--name", name, "--no-matrices", *where)

    def train(self, recipe: str, name: str, *settings: str, seed: int = 0) -> Path:
        """The folder of a run."""
        output = self.work / "runs" / name
        if not (output / "result.json").exists():
            sets = [part for setting in settings for part in ("--set", setting)]
            resume = ["--resume"] if (output / "checkpoint").exists() else []
            where = ("--store", str(self.work / "store"), "--output", str(output))
            self.command("train", recipe, *where, "--seed", str(seed), *sets, *resume)
        return output

    def evaluate(
        self, run: Path, split: str, dataset: str | None = None
    ) -> dict[str, dict[str, float]]:
        """Scores of a run on all languages of a split, of its own dataset or another."""
        found = run / f"evaluation-{'' if dataset is None else f'{dataset}-'}{split}.json"
        if not found.exists():
            other = () if dataset is None else ("--dataset", dataset)
            where = ("--store", str(self.work / "store"))
            self.command("evaluate", str(run), "--split", split, *other, *where)
        languages: dict[str, dict[str, float]] = read(found)["languages"]
        return languages


def read(path: Path) -> dict[str, Any]:
    """The content of a JSON file."""
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def percent(scores: Mapping[str, Mapping[str, float]], metric: str) -> dict[str, float]:
    """One score of each language."""
    return {lang: round(100 * of[metric], 2) for lang, of in sorted(scores.items())}


def paired(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, Any]:
    """The mean difference over what both have scores of, with its bootstrap over these."""
    names = sorted(one.keys() & other.keys())
    sides = [np.array([[[of[name], 1.0]] for name in names]) for of in (one, other)]
    found = difference(*sides, resamples=10_000)
    return {
        "of": names,
        "difference": round(found.difference, 3),
        "low": round(found.low, 3),
        "high": round(found.high, 3),
        "p_bootstrap": found.bootstrap,
        "p_permutation": found.permutation,
    }


def results_of_today(name: str) -> Path:
    """Where the results of an experiment go."""
    return RESULTS / f"{name}-{datetime.now(UTC):%Y-%m-%d}.json"


def merge(
    path: Path,
    size: Mapping[str, Any],
    found: Mapping[str, Any],
    differences: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> None:
    """Write conditions beside those of the same size that the file has, and their differences."""
    size = json.loads(json.dumps(size))
    before = read(path) if path.exists() else {}
    earlier = before.get("conditions", {}) if before.get("size") == size else {}
    conditions = {**earlier, **found}
    content = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "size": size,
        "conditions": conditions,
        "differences": dict(differences(conditions)),
    }
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
