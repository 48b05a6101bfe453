"""The account of backfills: every example, stored or dropped, and forecasts of it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from clients.commands.plan import Outcome
from clients.jobs import Forecast, Job
from syntax.errors import SpecError


def show_outcome(outcome: Outcome, seconds: float) -> None:
    """Print what became of every example of every task."""
    console = Console(markup=False, emoji=False)
    if len(outcome.jobs) == 1 and not outcome.failures:
        account(outcome.jobs[0], seconds)
    elif outcome.jobs:
        console.print(summary_table(outcome.jobs, seconds))
        for job in outcome.jobs:
            for failure in failures(job):
                console.print(f"{job.id}: {failure}", markup=False, soft_wrap=True)
    if outcome.forecasts:
        console.print(forecast_table(outcome.forecasts))
    for part, count in outcome.unlabelled.items():
        console.print(f"{part}: {count:,} examples without label", soft_wrap=True)
    for part in outcome.unusable:
        console.print(f"{part}: no example can be used, all are dropped", soft_wrap=True)
    for line in _unsent(outcome):
        console.print(line, markup=False, soft_wrap=True)


def _unsent(outcome: Outcome) -> list[str]:
    """How many parts were not sent, and which, each with its error."""
    failed = outcome.failures
    if not failed:
        return []
    total = len(failed) + len(outcome.jobs) + len(outcome.forecasts)
    each = (f"  {one.task}: {one.error_type}: {one.message}" for one in failed)
    return [f"{len(failed)} of {total} were not sent:", *each]


def check_report(path: Path) -> None:
    """Make the folder of a report, before anything is sent that would be reported.

    Raises:
        SpecError: Nothing can be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(f"the report {path} has no folder: {error}; name another place") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SpecError(f"the report {path} cannot be written; name a file in a folder of yours")


def write_report(path: Path, outcome: Outcome, seconds: float) -> None:
    """Write the same to a file, as JSON."""
    content = {"seconds": round(seconds, 3), **outcome.to_json()}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def account(job: Job, seconds: float | None = None) -> None:
    """Print what became of every example of a job."""
    console = Console(markup=False, emoji=False)
    console.print(account_table(job, seconds))
    for failure in failures(job):
        console.print(failure, markup=False, soft_wrap=True)


def failures(job: Job) -> list[str]:
    """What went wrong, a line each: the failed shards, or the job's first error."""
    if job.failed_shards:
        return [
            f"shard {shard.number}, tried {shard.tries} times: {shard.error_type}: {shard.message}"
            for shard in job.failed_shards
        ]
    error = job.error
    return [] if error is None else [f"{error.get('error_type')}: {error.get('message')}"]


def account_table(job: Job, seconds: float | None = None) -> Table:
    """The account of a job, one line a figure."""
    counts = job.counts
    table = Table("", "", title=f"job {job.id}: {job.state}", show_header=False)
    rows = {
        "dataset": f"{job.dataset} {job.split} {job.lang}, {job.tokenizer}",
        "parser": job.parser,
        "examples": f"{counts.examples:,}",
        "stored": f"{counts.stored:,}",
        "already stored": f"{counts.already_stored:,}",
        "parses done": f"{counts.parses_done:,}",
        "parses reused": f"{counts.parses_reused:,}",
        **{f"dropped: {reason}": f"{n:,}" for reason, n in sorted(counts.dropped.items())},
    }
    if seconds is not None:
        rows["time"] = f"{seconds:.1f} s, {counts.examples / max(seconds, 1e-9):,.0f} examples/s"
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def summary_table(jobs: Iterable[Job], seconds: float) -> Table:
    """The accounts of several jobs, a line each, and their sum."""
    jobs = list(jobs)
    reasons = sorted({reason for job in jobs for reason in job.counts.dropped})
    figures = ("examples", "stored", "already stored", "parses done", "parses reused")
    tokenizer = Column("tokenizer", overflow="fold")
    table = Table("split", "lang", tokenizer, "state", *figures, *reasons)
    for job in jobs:
        name = Path(job.tokenizer).name
        table.add_row(job.split, job.lang, name, job.state, *_cells(_figures(job), reasons))
    total = sum((_figures(job) for job in jobs), Counter())
    table.add_section()
    table.add_row("all", "", "", f"{seconds:.1f} s", *_cells(total, reasons))
    return table


def _figures(job: Job) -> Counter[str]:
    counts = job.counts
    parses = {"done": counts.parses_done, "reused": counts.parses_reused}
    return Counter(
        {
            **{name: getattr(counts, name) for name in ("examples", "stored", "already_stored")},
            **parses,
            **{f"dropped: {reason}": n for reason, n in counts.dropped.items()},
        }
    )


def _cells(figures: Mapping[str, int], reasons: Iterable[str]) -> list[str]:
    names = ("examples", "stored", "already_stored", "done", "reused")
    return [f"{figures.get(name, 0):,}" for name in (*names, *(f"dropped: {r}" for r in reasons))]


def forecast_table(forecasts: Iterable[Forecast]) -> Table:
    """What backfills would do, a column each.

    Of several tokenizers, the first has all the parses of a part.
    """
    table = Table("", title="dry run: nothing was kept")
    columns = []
    parsed: set[tuple[str, str, str]] = set()
    for forecast in forecasts:
        part = (forecast.split, forecast.lang, forecast.parser)
        columns.append(_forecast_rows(forecast, is_first=part not in parsed))
        parsed.add(part)
        table.add_column(f"{forecast.split} {forecast.lang}\n{Path(forecast.tokenizer).name}")
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(column.get(name, "0") for column in columns))
    return table


def _forecast_rows(forecast: Forecast, *, is_first: bool) -> dict[str, str]:
    new = forecast.new_parses if is_first else 0
    seconds = forecast.store_seconds + (forecast.parse_seconds if is_first else 0)
    size = forecast.store_bytes + (forecast.parse_bytes if is_first else 0)
    rows = {
        "parser": forecast.parser,
        "examples": f"{forecast.examples:,}",
        "to store": f"{forecast.to_store:,}",
        "already stored": f"{forecast.already_stored:,}",
        **{f"dropped: {reason}": f"{n:,}" for reason, n in sorted(forecast.dropped.items())},
        "texts": f"{forecast.texts:,}",
        "distinct texts": f"{forecast.distinct_texts:,}",
        "parsed already": f"{forecast.distinct_texts - new:,}",
        "new parses": f"{new:,}",
        "time": f"{seconds:,.0f} s with {forecast.workers} workers",
        "disk": f"{size / 1e6:,.1f} MB",
    }
    if sample := forecast.sample:
        lost = ", ".join(f"{reason} {n}" for reason, n in sorted(sample.dropped.items()))
        rows["sample"] = f"{sample.examples:,} examples; dropped: {lost or 'none'}"
    return rows
