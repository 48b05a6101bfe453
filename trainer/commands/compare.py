"""``parsebank compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from syntax.commands.tables import AsJson, print_json, print_table


def compare(
    first: Annotated[Path, typer.Argument(help="A: folder of a run, or of runs by seed.")],
    second: Annotated[Path, typer.Argument(help="B: the same, with the same seeds.")],
    split: Annotated[str, typer.Option(help="Split on which both were evaluated.")] = "test",
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metrics to compare, as accuracy,f1. Default: the main metric."),
    ] = None,
    crossed: Annotated[
        bool,
        typer.Option(
            "--crossed", help="Compare pairs of languages, on which both were evaluated --crossed."
        ),
    ] = False,
    resamples: Annotated[int, typer.Option(help="Resamples of each test.", min=100)] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write all numbers to this JSON file, and a table to a .md file beside it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Test whether A is better than B by more than chance, on the same examples."""
    from syntax.lists import listed
    from trainer.evaluation.compare import HEADER
    from trainer.evaluation.compare import compare as compare_runs
    from trainer.results import write_json

    options = {"resamples": resamples, "seed": seed}
    found = compare_runs(first, second, split, listed(metric), crossed=crossed, **options)
    if as_json:
        print_json(found.to_json())
    else:
        typer.echo(f"{found.dataset}, {split}: A is {first}, B is {second}", err=True)
        for header, *grid in found.grids().values() if crossed else ():
            print_table(header, grid)
        rows = [(line.metric, *line.cells()) for line in found.lines]
        print_table(("metric", "language", *HEADER[1:]), rows)
        for lang, counts in found.left_out.items():
            for reason, count in counts.items():
                told = f"left out, {lang}: {count} examples {reason.replace('_', ' ')}"
                typer.echo(told, err=True)
        if found.languages_of_one:
            langs = ", ".join(found.languages_of_one)
            typer.echo(f"only one of them predicted {langs}", err=True)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_json(output, found.to_json())
        output.with_suffix(".md").write_text(found.markdown(), "utf-8")
