"""The sub-commands ``parsebank store ...``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

Where = Annotated[
    str, typer.Option("--store", envvar="PARSEBANK_STORE", help="Folder or URL of the store.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_STORE = "parsebank-data"


def register(app: typer.Typer) -> None:
    """Add ``store`` to the command line."""
    store = typer.Typer(help="Look into a feature store.", no_args_is_help=True)
    store.command()(inspect)
    store.command()(datasets)
    store.command()(sql)
    store.command()(validate)
    store.command()(compact)
    app.add_typer(store, name="store")


def inspect(store: Where = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show the tables: versions, files, rows and bytes."""
    from featurestore.inspect import inspect_store
    from featurestore.store import open_store

    with open_store(store) as opened:
        tables = [table.to_json() for table in inspect_store(opened)]
    _print_rows(tables, as_json)


def datasets(store: Where = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the datasets, with the examples of each split and language."""
    from featurestore.store import open_store

    with open_store(store) as opened:
        infos = opened.datasets()
    if as_json:
        typer.echo(json.dumps([info.to_json() for info in infos], indent=2))
        return
    rows = [
        {
            "dataset": info.name,
            "tokenizer": info.tokenizer,
            "version": info.version,
            "split": part.split,
            "lang": part.lang,
            "examples": part.rows,
            "labels": ", ".join(info.labels),
        }
        for info in infos
        for part in info.parts
    ]
    _print_rows(rows, as_json=False)


def sql(
    query: Annotated[str, typer.Argument(help="SQL over parses, sentences, words, examples, ...")],
    store: Where = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Query the store with DuckDB SQL; docs/store.md lists views and functions."""
    import duckdb

    from featurestore.store import open_store

    with open_store(store) as opened:
        try:
            relation = opened.sql(query)
            rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
        except duckdb.Error as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(2) from error
    _print_rows(rows, as_json)


def validate(store: Where = DEFAULT_STORE) -> None:
    """Check every row: trees, sizes, and that stored matrices equal derived ones."""
    from featurestore.store import open_store
    from featurestore.validate import validate_store

    with open_store(store) as opened:
        report = validate_store(opened)
    typer.echo(
        f"{report.parses} parses, {report.examples} examples, {report.matrices} segments with "
        f"matrices checked: {report.problem_count} problems"
    )
    for problem in report.problems:
        typer.echo(f"{problem.table}  {problem.row}  {problem.message}")
    if report.problem_count:
        raise typer.Exit(1)


def compact(store: Where = DEFAULT_STORE) -> None:
    """Join small files; pinned versions stay readable."""
    from featurestore.inspect import inspect_store
    from featurestore.store import open_store

    with open_store(store) as opened:
        before = sum(table.files for table in inspect_store(opened))
        opened.compact()
        after = sum(table.files for table in inspect_store(opened))
    typer.echo(f"{before} files became {after}")


def _print_rows(rows: list[dict[str, object]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False, default=str))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*(rows[0] if rows else ["nothing here"]))
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)
