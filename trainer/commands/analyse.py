"""``parsebank analyse``."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import markdown_table, print_table
from trainer.commands.shared import Langs

if TYPE_CHECKING:
    from trainer.evaluation.analyse import Analysis, Confusion

CONFUSION = "confusion"


def analyse(
    first: Annotated[Path, typer.Argument(help="A: folder of a run, or of runs by seed.")],
    second: Annotated[
        Path | None, typer.Argument(help="B: the same, with the same seeds; adds A - B.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="Of any run: lang, family, length (words of an example). Of classes and entities: "
            "label. Of parsers: relation, distance (position of a word less its head's), "
            "direction, depth, by gold trees. Of relations: mention_distance (words), mention_path "
            "(edges). Of labels, relations and tags also: confusion, which has no metric."
        ),
    ] = "length",
    store: Where = DEFAULT_STORE,
    split: Annotated[str, typer.Option(help="Split on which the runs were evaluated.")] = "test",
    lang: Langs = None,
    metric: Annotated[
        str | None,
        typer.Option(help="One metric, as for compare. Default: the main one; f1 of labels."),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(help="Field whose length counts, such as question. Default: all fields."),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(help="Put numbers into so many bins. Default: a group for each.", min=1),
    ] = None,
    equal: Annotated[
        Literal["count", "range"],
        typer.Option(help="Bins with as many items each, or of the same width."),
    ] = "count",
    resamples: Annotated[int, typer.Option(help="Resamples of each interval.", min=100)] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    form: Annotated[
        Literal["table", "markdown", "csv", "latex", "json"],
        typer.Option("--format", help="CSV and JSON have every number; LaTeX needs booktabs."),
    ] = "table",
    output: Annotated[
        Path | None, typer.Option(help="Write Markdown, CSV, LaTeX or JSON to this file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw it: a file .svg, .pdf or .png.")
    ] = None,
) -> None:
    """Score a run, or the difference of two, by groups of examples, words or labels.

    Reads the predictions of parsebank evaluate, and the store that they were made on; no model.
    Intervals are the bootstrap's, 95 %.
    """
    from syntax.errors import SpecError
    from trainer.evaluation import analyse as analysis
    from trainer.evaluation import pictures

    if output is not None and form == "table":
        raise SpecError(
            "a table is printed only; for a file choose `form=markdown`, csv, latex or json"
        )
    if plot is not None:
        pictures.check_picture(plot)
    found: Analysis | Confusion
    if by == CONFUSION:
        _refuse(metric=metric, field=field, bins=bins)
        found = analysis.confusion(first, second, split, lang or ())
    else:
        with open_there(store) as opened:
            found = analysis.analyse(
                *(first, second, by, opened, split, metric),
                langs=lang or (),
                field=field,
                bins=bins,
                equal=equal,
                resamples=resamples,
                seed=seed,
            )
    if plot is not None:
        pictures.draw_analysis(found, plot)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(_text(found, form), "utf-8")
    elif form == "table":
        print_table(*found.shown(), title=found.title)
    else:
        typer.echo(_text(found, form), nl=False)
    for line in _told(found):
        typer.echo(line, err=True)


def _refuse(**given: object) -> None:
    from syntax.errors import SpecError

    for name, value in given.items():
        if value is not None:
            raise SpecError(f"a confusion matrix has counts alone; leave `{name}={value}` out")


def _told(found: Analysis | Confusion) -> list[str]:
    return [f"left out: {count} {what}" for what, count in found.left_out.items()]


def _text(found: Analysis | Confusion, form: str) -> str:
    from syntax.strict_json import strict_json
    from trainer.evaluation.typeset import escaped, tabular

    header, rows = found.shown()
    told = _told(found)
    if form == "json":
        return f"{strict_json(found.to_json())}\n"
    if form == "csv":
        text = StringIO()
        names, numbers = found.numbers()
        csv.writer(text, lineterminator="\n").writerows([names, *numbers])
        return text.getvalue()
    if form == "latex":
        cells = [[escaped("" if cell is None else str(cell)) for cell in row] for row in rows]
        return tabular([escaped(name) for name in header], cells, [found.title, *told])
    notes = "".join(f"\n* {line}" for line in told)
    return f"# {found.title}\n\n{markdown_table(header, rows)}\n{notes}\n"
