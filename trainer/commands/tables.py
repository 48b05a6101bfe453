"""``parsebank tables``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def tables(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of runs, or folders that contain them at any depth. Runs that differ "
            "only in their seed are one system."
        ),
    ],
    split: Annotated[str, typer.Option(help="Split on which the runs were evaluated.")] = "test",
    metric: Annotated[
        str | None, typer.Option(help="Score to show. Default: the main metric.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="System to test the others against: its name in the table, or the folder of its "
            "runs."
        ),
    ] = None,
    form: Annotated[
        Literal["markdown", "csv", "latex"],
        typer.Option("--format", help="CSV has every number; LaTeX needs booktabs."),
    ] = "markdown",
    by_seed: Annotated[
        bool, typer.Option("--by-seed", help="Add a row per seed. CSV always has them.")
    ] = False,
    resamples: Annotated[int, typer.Option(help="Resamples of each test.", min=100)] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    output: Annotated[
        Path | None, typer.Option(help="Write the table to this file instead of printing it.")
    ] = None,
) -> None:
    """Print a table of evaluated runs: systems by languages, over seeds."""
    from trainer.evaluation.tables import score_table
    from trainer.evaluation.typeset import comma_separated, latex, markdown

    found = score_table(runs, split, metric, baseline, resamples=resamples, seed=seed)
    if form == "csv":
        text = comma_separated(found)
    else:
        text = (latex if form == "latex" else markdown)(found, by_seed=by_seed)
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, "utf-8")
    for note in found.notes if form == "csv" or output is not None else ():
        typer.echo(note, err=True)
