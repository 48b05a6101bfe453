"""The sub-commands: ``parse fill show backfill jobs benchmarks tokenizers demo``."""

from __future__ import annotations

import typer

from clients.commands.backfill import backfill
from clients.commands.benchmarks import benchmarks
from clients.commands.demo import demo
from clients.commands.fill import fill
from clients.commands.jobs import jobs
from clients.commands.parse import parse
from clients.commands.show import show
from clients.commands.tokenizers import tokenizers


def register(app: typer.Typer) -> None:
    app.command()(demo)
    app.command()(parse)
    app.command()(fill)
    app.command()(show)
    app.command()(backfill)
    app.add_typer(jobs, name="jobs")
    app.add_typer(benchmarks, name="benchmarks")
    app.add_typer(tokenizers, name="tokenizers")
