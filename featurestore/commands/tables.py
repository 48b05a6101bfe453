"""The tables: ``parsebank store inspect``, ``sql``, ``compact``, ``vacuum`` and their like."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, astuple, fields
from typing import Annotated, Any

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands.printing import Version, Where, open_there, rows_bar, version_of
from syntax.commands.tables import (
    AsJson,
    Size,
    print_json,
    print_rows,
    print_table,
)


def inspect(
    store: Where = DEFAULT_STORE,
    changed: Annotated[
        bool, typer.Option("--changed", help="List instead the example ids with several contents.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the tables: versions, files, rows and bytes."""
    from featurestore.maintenance.inspect import inspect_store
    from featurestore.maintenance.validate import changed_examples

    with open_there(store) as opened:
        found = changed_examples(opened) if changed else inspect_store(opened)
        print_rows([_sized(row.to_json()) for row in found], as_json)


def datasets(store: Where = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the datasets, with the examples of each split and language."""
    with open_there(store) as opened:
        infos = opened.datasets()
    if as_json:
        print_json([info.to_json() for info in infos])
        return
    columns = ("dataset", "tokenizer", "version", "split", "lang", "examples", "labels")
    rows = [
        (*(info.name, info.tokenizer, info.version), part.split, part.lang, part.rows, info.labels)
        for info in infos
        for part in info.parts
    ]
    print_table(columns, rows)


def sql(
    query: Annotated[
        str, typer.Argument(help="SQL over parses, sentences, words, ..., or a graph pattern.")
    ],
    store: Where = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Query the store with one SELECT in DuckDB's SQL; docs/reference/store.md lists the views.

    A graph pattern in Grew's syntax finds words: 'pattern { V [upos=VERB]; V -[obj]-> O; O << V }'.
    The store is read-only here: nothing is written, and no other file is read.
    """
    import duckdb

    from featurestore.sql.answer import fetch_rows
    from syntax.errors import SpecError

    with open_there(store) as opened:
        try:
            relation = opened.sql(query)
            columns, rows = relation.columns, fetch_rows(relation)
        except duckdb.Error as error:
            raise SpecError(str(error)) from error
    print_table(columns, rows, as_json)


def validate(
    store: Where = DEFAULT_STORE,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also derive keys and vectors again and compare them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every row: trees, sizes, and whether stored matrices equal derived ones."""
    from featurestore.maintenance.inspect import inspect_store
    from featurestore.maintenance.validate import validate_store
    from syntax.errors import StoreError

    with open_there(store) as opened:
        rows = None
        with suppress(StoreError):  # a log is damaged, which the report says
            checked = ("parses", "datasets/")
            rows = sum(t.rows for t in inspect_store(opened) if t.table.startswith(checked))
        with rows_bar(rows) as advance:
            report = validate_store(opened, deep, advance)
    if as_json:
        print_json(asdict(report))
    else:
        typer.echo(
            f"{report.parses} parses, {report.examples} examples, {report.matrices} segments with "
            f"matrices checked: {report.problem_count} problems"
        )
        for problem in report.problems:
            typer.echo(f"{problem.table}  {problem.row}  {problem.message}")
        if report.unlisted:
            typer.echo(
                f"{report.unlisted} data files are of no version: writers were stopped, or the "
                "newest entries of a log are gone; `store repair` names them"
            )
        if report.changed:
            typer.echo(
                f"{len(report.changed)} example ids have several contents: store inspect --changed"
            )
        if report.repeated:
            typer.echo(f"{report.repeated} rows are there more than once: store compact")
        if report.same_place:
            typer.echo(f"{report.same_place} places in the order of a split have several examples")
    if report.problem_count:
        raise typer.Exit(1)


def repair(
    store: Where = DEFAULT_STORE,
    apply: Annotated[
        bool, typer.Option("--apply", help="Change the store; stop its writers first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find damaged files and logs; with --apply, take them out and keep what is whole.

    Exits with 1 if anything is damaged and was not repaired.
    """
    from featurestore.maintenance.repair import repair_store

    with open_there(store) as opened, rows_bar(None) as advance:
        report = repair_store(opened, dry_run=not apply, watch=advance)
    if as_json:
        print_json(report.to_json())
    else:
        for fault in report.log:
            typer.echo(f"{fault.table}  {fault.file}  {fault.message} ({fault.action})")
        for file in report.files:
            typer.echo(
                f"{file.table}  {file.path}  {file.rows} rows, {file.kept} are kept: {file.message}"
            )
        if lost := sum(file.rows - file.kept for file in report.files):
            typer.echo(f"{lost} rows are lost until the backfill runs again; --json names them")
        for table, keys in report.deleted.items():
            typer.echo(f"{table}  {len(keys)} rows were deleted, and are there again")
        if report.needed:
            typer.echo(
                f"{len(report.needed)} parses that examples refer to are not in the store; --json "
                "lists their texts, and parsing these makes them again"
            )
        for table, paths in report.unlisted.items():
            typer.echo(
                f"{table}  {len(paths)} data files are of no version: of writers that were "
                f"stopped, or of lost entries; a vacuum deletes them: {', '.join(paths)}"
            )
        done = "repaired" if apply else "run again with --apply to repair"
        typer.echo("nothing is damaged" if report.is_sound else done)
    if not (apply or report.is_sound):
        raise typer.Exit(1)


def compact(store: Where = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Join small files and remove repeated rows; older versions stay readable."""
    from featurestore.maintenance.inspect import inspect_store

    with open_there(store) as opened:
        before = sum(table.files for table in inspect_store(opened))
        opened.compact()
        after = sum(table.files for table in inspect_store(opened))
    if as_json:
        print_json({"files_before": before, "files_after": after})
    else:
        typer.echo(f"{before} files became {after}")


def pin(
    name: Annotated[str, typer.Argument(help="Name of the pin, such as paper-v1.")],
    dataset: Annotated[str, typer.Option(help="Name of the dataset.")],
    store: Where = DEFAULT_STORE,
    tokenizer: Annotated[str | None, typer.Option(help="Tokenizer, if there are several.")] = None,
    version: Version = None,
    by: Annotated[str, typer.Option(help="Who needs the pin.")] = "",
    as_json: AsJson = False,
) -> None:
    """Pin a version of a dataset, which no vacuum deletes."""
    from featurestore.dataset.dataset import version_number
    from featurestore.tables.pins import Pin

    with open_there(store) as opened:
        card, table = opened.features.find(dataset, tokenizer)
        found = table.snapshot(version_number(opened, card, version_of(version))).version
        opened.pins.add(Pin(name, card.path, found, by))
        pinned = opened.pins.get(name)
    if as_json:
        print_json(asdict(pinned))
    else:
        typer.echo(f"{name}: version {found} of {card.path}")


def unpin(
    name: Annotated[str, typer.Argument(help="Name of the pin.")],
    store: Where = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Remove a pin."""
    with open_there(store) as opened:
        gone = opened.pins.remove(name)
    if as_json:
        print_json(asdict(gone))
    else:
        typer.echo(f"{name} kept version {gone.version} of {gone.table}; it does no more")


def pins(store: Where = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the pinned versions."""
    from featurestore.tables.pins import Pin

    with open_there(store) as opened:
        found = [astuple(pin) for pin in opened.pins.all().values()]
    print_table([column.name for column in fields(Pin)], found, as_json)


def vacuum(
    store: Where = DEFAULT_STORE,
    older_than_hours: Annotated[
        float,
        typer.Option(
            "--older-than",
            min=1.0,
            help="Keep files that went out of use less than this many hours ago: readers may be at "
            "them. Streams keep theirs themselves.",
        ),
    ] = 168.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report what would be deleted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete older versions that are not pinned: their files, and their entries in logs."""
    from featurestore.maintenance.vacuum import vacuum_store

    with open_there(store) as opened:
        found = vacuum_store(opened, older_than_hours, dry_run)
    print_rows([_sized(table.to_json()) for table in found], as_json)


def delete(
    keys: Annotated[list[str] | None, typer.Argument(help="Keys of parses.")] = None,
    store: Where = DEFAULT_STORE,
    text: Annotated[
        str | None, typer.Option(help="Delete all parses of exactly this text.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Dataset of --example.")] = None,
    example: Annotated[
        str | None, typer.Option(help="Id of an example: delete all its texts.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split of --example.")] = None,
    lang: Annotated[str | None, typer.Option(help="Language of --example.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report what would be deleted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete texts: their parses and every example that uses one. A vacuum then frees the disk."""
    from featurestore.maintenance.delete import delete_parses, keys_of_example, keys_of_text

    if (dataset is None) != (example is None):
        raise typer.BadParameter("give --dataset and --example together")
    if sum((bool(keys), text is not None, example is not None)) != 1:
        raise typer.BadParameter("give keys, --text, or --dataset and --example: one of them")
    with open_there(store) as opened:
        if text is not None:
            keys = keys_of_text(opened, text)
        elif dataset is not None and example is not None:
            keys = keys_of_example(opened, dataset, example, split, lang)
            # Once the example is gone, only these find what an interruption leaves.
            typer.echo(f"deleting the parses {' '.join(keys)}", err=True)
        report = delete_parses(opened, keys or [], dry_run)
    if as_json:
        print_json(report.to_json())
        return
    verb = "would go" if dry_run else "deleted"
    typer.echo(f"{len(report.keys)} parses and {report.examples} examples {verb}")
    for part in report.datasets:
        typer.echo(
            f"  {part.examples} of {part.dataset} ({part.tokenizer}), {part.split}/{part.lang}"
        )
    if report.pins:
        typer.echo(f"pins that keep the text until `store unpin`: {', '.join(report.pins)}")
    if report.same_text:
        typer.echo(f"other parses of the same text, which stay: {' '.join(report.same_text)}")
    if not dry_run:
        typer.echo(
            "older versions hold the text until `parsebank store vacuum --older-than 1` deletes "
            "their files, in an hour at the earliest"
        )


def evict(
    store: Where = DEFAULT_STORE,
    max_gb: Annotated[
        float | None, typer.Option("--max-gb", min=0.0, help="Limit in 10^9 bytes.")
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option("--max-bytes", min=0, help="Limit in bytes.")
    ] = None,
    spare_hours: Annotated[
        float, typer.Option(min=0.0, help="Keep parses younger than this.")
    ] = 1.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report what would be deleted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the oldest parses that no example needs, until the table is within a limit."""
    from featurestore.maintenance.evict import evict_parses

    if (max_gb is None) == (max_bytes is None):
        raise typer.BadParameter("give --max-gb or --max-bytes, one of them")
    if not math.isfinite(max_gb or 0.0):
        raise typer.BadParameter(f"--max-gb is {max_gb}; give a number of bytes, in 10^9")
    bound = max_bytes if max_bytes is not None else round((max_gb or 0.0) * 1e9)
    with open_there(store) as opened:
        found = evict_parses(opened, bound, dry_run, spare_hours)
    print_rows([_sized(found.to_json())], as_json)


def _sized(row: dict[str, Any]) -> dict[str, Any]:
    sizes = ("size", "max_bytes", "bytes_before", "bytes_after")
    return {name: Size(value) if name in sizes else value for name, value in row.items()}
