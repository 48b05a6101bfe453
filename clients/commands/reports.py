"""The account of backfills: every example, stored or dropped, and forecasts of it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from clients.client.jobs import Forecast, Job
from clients.commands.plan import Outcome
from clients.spelling import spelled
from syntax.commands.tables import Size, print_json, print_record, print_rows, print_table
from syntax.errors import SpecError


def show_outcome(outcome: Outcome, seconds: float, as_json: bool = False) -> None:
    if as_json:
        return print_json(_content(outcome, seconds))
    if len(outcome.jobs) == 1 and not outcome.failures:
        account(outcome.jobs[0], seconds)
    elif outcome.jobs:
        print_rows(summary(outcome.jobs, seconds))
        for job in outcome.jobs:
            for failure in failures(job):
                typer.echo(f"{job.id}: {failure}", err=True)
    if outcome.forecasts:
        show_forecasts(outcome.forecasts)
    for line in notes(outcome):
        typer.echo(line, err=True)
    return None


def notes(outcome: Outcome) -> list[str]:
    unlabelled, cut = outcome.unlabelled.items(), outcome.cut.items()
    return [
        *(f"{part}: {count:,} examples without label" for part, count in unlabelled),
        *(
            f"{part}: dropped: {reason}, first: {message}"
            for part, found in outcome.rejected.items()
            for reason, message in found.items()
        ),
        *(f"{part}: {count:,} examples cut to --max-pieces" for part, count in cut),
        *(f"{part}: no example can be used, all are dropped" for part in outcome.unusable),
        *_unsent(outcome),
    ]


def _unsent(outcome: Outcome) -> list[str]:
    failed = outcome.failures
    if not failed:
        return []
    total = len(failed) + len(outcome.jobs) + len(outcome.forecasts)
    each = (f"  {one.planned}: {one.error_type}: {spelled(one.message)}" for one in failed)
    return [f"{len(failed)} of {total} were not sent:", *each]


def check_report(path: Path) -> None:
    """Make the folder of a report, before anything is sent."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(f"the report {path} has no folder: {error}; name another place") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SpecError(f"the report {path} cannot be written; name a file in a folder of yours")


def write_report(path: Path, outcome: Outcome, seconds: float) -> None:
    content = _content(outcome, seconds)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _content(outcome: Outcome, seconds: float) -> dict[str, Any]:
    return {"seconds": round(seconds, 3), **outcome.to_json()}


def account(job: Job, seconds: float | None = None, as_json: bool = False) -> None:
    if as_json:
        print_json(asdict(job))
    else:
        print_record(account_facts(job, seconds))
        for failure in failures(job):
            typer.echo(failure, err=True)


def failures(job: Job) -> list[str]:
    if job.failed_shards:
        return [
            f"shard {shard.number}, tried {shard.tries} times: {shard.error_type}: {shard.message}"
            for shard in job.failed_shards
        ]
    error = job.error
    return [] if error is None else [f"{error.get('error_type')}: {error.get('message')}"]


def account_facts(job: Job, seconds: float | None = None) -> dict[str, object]:
    counts = job.counts
    facts: dict[str, object] = {
        "job": job.id,
        "state": job.state,
        "dataset": f"{job.dataset} {job.split} {job.lang}, {job.tokenizer}",
        "parser": job.parser,
        "examples": counts.examples,
        "stored": counts.stored,
        "already stored": counts.already_stored,
        "parses done": counts.parses_done,
        "parses reused": counts.parses_reused,
        **{f"dropped: {reason}": n for reason, n in sorted(counts.dropped.items())},
    }
    if seconds is not None:
        rate = counts.accounted / max(seconds, 1e-9)
        facts["time"] = f"{seconds:.1f} s, {rate:,.0f} examples/s"
    return facts


def summary(jobs: Sequence[Job], seconds: float) -> list[dict[str, object]]:
    reasons = sorted({reason for job in jobs for reason in job.counts.dropped})
    names = ("split", "lang", "tokenizer", "state")
    rows = [
        (job.split, job.lang, Path(job.tokenizer).name, job.state, _figures(job)) for job in jobs
    ]
    total = sum((figures for *_, figures in rows), Counter())
    return [
        {**dict(zip(names, row, strict=True)), **_columns(figures, reasons)}
        for *row, figures in (*rows, ("all", "", "", f"{seconds:.1f} s", total))
    ]


def _figures(job: Job) -> Counter[str]:
    counts = job.counts
    return Counter(
        {
            "examples": counts.examples,
            "stored": counts.stored,
            "already stored": counts.already_stored,
            "parses done": counts.parses_done,
            "parses reused": counts.parses_reused,
            **{f"dropped: {reason}": n for reason, n in counts.dropped.items()},
        }
    )


def _columns(figures: Mapping[str, int], reasons: Iterable[str]) -> dict[str, int]:
    names = ("examples", "stored", "already stored", "parses done", "parses reused")
    dropped = {reason: figures.get(f"dropped: {reason}", 0) for reason in reasons}
    return {**{name: figures.get(name, 0) for name in names}, **dropped}


def show_forecasts(forecasts: Sequence[Forecast]) -> None:
    """Print forecasts, a column each; the first of several tokenizers has all parses of a part."""
    columns: dict[str, dict[str, object]] = {}
    parsed: set[tuple[str, str, str]] = set()
    for forecast in forecasts:
        part = (forecast.split, forecast.lang, forecast.parser)
        name = f"{forecast.split} {forecast.lang} {Path(forecast.tokenizer).name}"
        columns[name] = _forecast_rows(forecast, is_first=part not in parsed)
        parsed.add(part)
    figures = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [(name, *(column.get(name, 0) for column in columns.values())) for name in figures]
    print_table(("figure", *columns), rows, title="dry run: nothing was kept")


def _forecast_rows(forecast: Forecast, *, is_first: bool) -> dict[str, object]:
    new = forecast.new_parses if is_first else 0
    seconds = forecast.store_seconds + (forecast.parse_seconds if is_first else 0)
    size = forecast.store_bytes + (forecast.parse_bytes if is_first else 0)
    rows: dict[str, object] = {
        "parser": forecast.parser,
        "examples": forecast.examples,
        "to store": forecast.to_store,
        "already stored": forecast.already_stored,
        **{f"dropped: {reason}": n for reason, n in sorted(forecast.dropped.items())},
        "texts": forecast.texts,
        "distinct texts": forecast.distinct_texts,
        "parsed already": forecast.distinct_texts - new,
        "new parses": new,
        "time": f"{seconds:,.0f} s with {forecast.workers} workers",
        "disk": Size(size),
    }
    if sample := forecast.sample:
        lost = ", ".join(f"{reason} {n}" for reason, n in sorted(sample.dropped.items()))
        rows["sample"] = f"{sample.examples:,} examples; dropped: {lost or 'none'}"
    return rows
