"""``parsebank tables``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def tables(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Output folders of runs, or folders of them at any depth. Runs that differ in "
            "their seed alone are one system."
        ),
    ],
    split: Annotated[str, typer.Option(help="Split that the runs were evaluated on.")] = "test",
    metric: Annotated[
        str | None, typer.Option(help="Which score. The headline by default.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="System that the others are tested against: its name in the table, or the folder "
            "of its runs."
        ),
    ] = None,
    form: Annotated[
        Literal["markdown", "csv", "latex"],
        typer.Option("--format", help="CSV has every number; LaTeX needs booktabs."),
    ] = "markdown",
    by_seed: Annotated[
        bool, typer.Option("--by-seed", help="A row for each seed, too. CSV always has them.")
    ] = False,
    resamples: Annotated[int, typer.Option(help="Resamples of each test.", min=100)] = 2000,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 0,
    output: Annotated[
        Path | None, typer.Option(help="Write the table there instead of printing it.")
    ] = None,
) -> None:
    """Put the scores of evaluated runs in a table: systems by languages, over seeds."""
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
