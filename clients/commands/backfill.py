"""``parsebank backfill``: a benchmark into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clients.commands.connect import (
    EngineOption,
    SchedulerOption,
    StoreOption,
    UrlOption,
    connect,
    engine_settings,
    service_address,
)
from syntax.commands.tables import AsJson


def backfill(
    benchmark: Annotated[
        str, typer.Argument(metavar="NAME", help="A reader of `parsebank benchmarks list`.")
    ],
    split: Annotated[
        list[str],
        typer.Option(help="Split, such as train, or train,dev; repeatable; `all` for all found."),
    ],
    lang: Annotated[
        list[str],
        typer.Option(
            help="Language code; repeatable, or several as en,fr; `all` for every one found."
        ),
    ],
    path: Annotated[
        Path | None, typer.Option(help="Folder or file of the benchmark; `sample` needs none.")
    ] = None,
    parser: Annotated[str | None, typer.Option(help="Parser; else the language's own.")] = None,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(
            help="Name or path of a tokenizer; else the service's own. Repeatable: texts are "
            "parsed once for all of them."
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="raw, sentence, pretokenized, retokenize or gold; else the benchmark's usual one."
        ),
    ] = None,
    split_long: Annotated[
        bool,
        typer.Option(
            "--split-long", help="Cut sentences over the service's limit; else drop the example."
        ),
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Dataset in the store; else the benchmark's name.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many items of each part.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Of `table`: a text column, or FIELD=COLUMN; repeatable, in order."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="Of `table`: a label, as NAME[:KIND[:FIELD]][=COLUMN]."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Of `table`: the column with the ids.")
    ] = None,
    matrices: Annotated[
        bool, typer.Option("--matrices/--no-matrices", help="Store the matrices as well.")
    ] = True,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what would be parsed and stored, how long and how large."
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(help="Also write the account to this file, as JSON."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on any drop.")] = False,
    engine: EngineOption = None,
    scheduler: SchedulerOption = None,
    url: UrlOption = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Parse parts of a benchmark, align them to tokenizers and store the features.

    What was parsed before is not parsed again: an interrupted backfill is simply started again.
    A part that cannot be read costs no other part.
    """
    from clients.commands.parts import chosen_reader, wanted_parts
    from clients.commands.plan import Plan
    from clients.commands.progress import Watcher
    from clients.commands.reports import check_report, show_outcome, write_report

    reader = chosen_reader(benchmark, columns or (), label or (), id_column)
    long_sentences = "split" if split_long else None
    plan = Plan(
        reader,
        path,
        wanted_parts(reader, path, split, lang),
        tuple(tokenizer or (None,)),
        name=name,
        mode=mode,
        limit=limit,
        options={"parser": parser, "matrices": matrices, "long_sentences": long_sentences},
    )
    if report is not None:
        check_report(report)
    settings = engine_settings(engine, scheduler, service_address(url, store))
    with connect(url, store, **settings) as client, Watcher() as watcher:
        outcome = plan.forecast(client, watcher) if dry_run else plan.run(client, watcher)
    show_outcome(outcome, watcher.seconds, as_json)
    if report is not None:
        write_report(report, outcome, watcher.seconds)
    raise typer.Exit(outcome.exit_code(strict=strict))
