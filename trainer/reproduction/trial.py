"""One trial of a row: its folder, its size, and the parsebank commands that it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from syntax.errors import SpecError
from syntax.strict_json import parse_json
from trainer.reproduction.row import Row, Size, Source
from trainer.results import read_json, read_result, write_json

CONSOLE: Final = (sys.executable, "-P", "-m", "parsebank")
"""The command line of this installation, whatever is first on the path."""

FAILURES: Final = "failures.jsonl"
DESIGN: Final = "design.json"

C = TypeVar("C")
T = TypeVar("T")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str | None:
    """The commit of the source tree that this code runs from; None for an installed package."""
    return _git("describe", "--always", "--dirty", "--abbrev=12")


def commits_since(commit: str | None, paths: Sequence[str]) -> int | None:
    """Commits that have touched some paths since; None where no history says it."""
    begin = str(commit).removesuffix("-dirty")
    count = _git("rev-list", "--count", f"{begin}..HEAD", "--", *paths)
    return None if count is None else int(count)


def _git(*arguments: str) -> str | None:
    command = ("git", "-C", str(Path(__file__).parents[2]), *arguments)
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


@dataclass(frozen=True, slots=True)
class Trial:
    """A row that runs, in a folder of its own.

    Everything it makes stays in the folder, so that the same trial goes on where it stopped.
    """

    row: Row
    folder: Path
    data: Path
    size: Size
    seeds: tuple[int, ...]
    threads: int | None = None

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def command(self) -> str:
        seeds = f" --seeds {len(self.seeds)}" if self.seeds else ""
        return f"parsebank reproduce {self.row.name} --size {self.size}{seeds}"

    def begin(self) -> dict[str, Any]:
        """The rule, the power and the seeds with which the trial began, before its first command.

        Raises:
            SpecError: The row has another rule, power or other reductions by now.
        """
        path = self.folder / DESIGN
        own = {
            "rule": self.row.rule,
            "reductions": self.row.reduced(self.size),
            "power": str(self.row.design or "not estimated"),
        }
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(path, {**own, "seeds": len(self.seeds), "commit": commit(), "when": now()})
        found: dict[str, Any] = read_json(path, f"{path} is gone")
        changed = [name for name, text in own.items() if found.get(name) != text]
        if changed:
            raise SpecError(
                f"{self.folder} began under another {' and '.join(changed)} of {self.row.name} "
                f"(commit {found['commit']}); give another --output to begin anew"
            )
        return found

    def missing(self) -> list[Source]:
        return [source for source in self.row.data if not (self.data / source.path).exists()]

    def check_data(self) -> None:
        if missing := self.missing():
            listed = "\n  ".join(f"{self.data / one.path} ({one.origin})" for one in missing)
            raise SpecError(
                f"{self.row.name} needs data that is not there:\n  {listed}\n"
                "put it there, or set PARSEBANK_DATA to another folder"
            )

    def parsebank(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """Run a command, with an environment beside that of this process."""
        print("$ parsebank", *arguments, flush=True)  # noqa: T201  (the log of a long trial)
        variables = {**os.environ, **(environment or {})}
        code = subprocess.run((*CONSOLE, *arguments), check=False, env=variables).returncode
        if code:
            # A failed command is kept for the account, also when it succeeds later.
            failure = {"command": arguments[0], "code": code, "when": now()}
            with (self.folder / FAILURES).open("a", encoding="utf-8") as file:
                file.write(json.dumps(failure) + "\n")
            raise SpecError(
                f"`parsebank {arguments[0]}` ended with {code}; see its message above, and run "
                "the same `parsebank reproduce` again to go on"
            )

    def failures(self) -> list[dict[str, Any]]:
        path = self.folder / FAILURES
        if not path.exists():
            return []
        return [parse_json(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def results(self) -> list[dict[str, Any]]:
        return [read_result(path) for path in sorted(self.folder.glob("runs/*/*/result.json"))]

    def backfill(
        self, name: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        """Fill the trial's store once for each ``name``."""
        report = self.folder / "backfills" / f"{name}.json"
        if not report.exists():
            report.parent.mkdir(parents=True, exist_ok=True)
            where = ("--store", str(self.store), "--report", str(report))
            command = ("backfill", *arguments, "--no-matrices", *where)
            self.parsebank(*command, environment=environment)

    def train(self, recipe: str, name: str, seed: int, settings: Sequence[str] = ()) -> Path:
        """Train a recipe with a seed, or go on with it; gives the folder of the finished run."""
        output = self.folder / "runs" / name / f"seed{seed}"
        if not (output / "result.json").exists():
            threads = () if self.threads is None else (f"threads={self.threads}",)
            sets = [part for one in (*settings, *threads) for part in ("--set", one)]
            resume = ("--resume",) if (output / "checkpoint").exists() else ()
            where = ("--store", str(self.store), "--output", str(output), "--seed", str(seed))
            self.parsebank("train", recipe, *where, *sets, *resume)
        return output

    def grid(self, conditions: Iterable[C], measure: Callable[[C, int], T]) -> dict[C, list[T]]:
        """Measurements of each condition, by seed.

        Conditions run side by side, so that an interrupted trial has whole lines.
        """
        found: dict[C, list[T]] = {condition: [] for condition in conditions}
        for seed in self.seeds:
            for condition, of_seeds in found.items():
                of_seeds.append(measure(condition, seed))
        return found

    def result(self, run: Path) -> dict[str, Any]:
        return read_result(run)

    def scores(self, run: Path, split: str) -> dict[str, Any]:
        found = self.evaluation(run, f"evaluation-{split}.json", "--split", split)
        languages: dict[str, Any] = found["languages"]
        return languages

    def evaluation(self, run: Path, file: str, *arguments: str) -> dict[str, Any]:
        """Evaluate a run once and read ``file`` of its folder, which the evaluation writes."""
        if not (run / file).exists():
            self.parsebank("evaluate", str(run), "--store", str(self.store), *arguments)
        return read_json(run / file, f"`parsebank evaluate {run}` did not write {file}")
