"""``parsebank benchmarks``: which files can be read, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from clients.benchmarks import Benchmark, Item

benchmarks = typer.Typer(help="Which benchmarks can be read.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the benchmark.")]
PathOption = Annotated[Path | None, typer.Option(help="Folder or file of the benchmark.")]

_SHOWN = 10
"""Rejections that `check` prints in full."""


@benchmarks.command("list")
def list_benchmarks() -> None:
    """Every reader, one a line; `describe` tells more about each."""
    from rich.console import Console
    from rich.table import Table

    from clients.benchmarks import BENCHMARKS

    table = Table("name", "fields", "labels", "modes")
    for name, reader in BENCHMARKS.items():
        labels = ", ".join(label.name for label in reader.labels) or "-"
        table.add_row(name, ", ".join(reader.fields), labels, ", ".join(reader.modes))
    Console().print(table)


@benchmarks.command()
def describe(name: NameArgument, path: PathOption = None) -> None:
    """What a reader states; with a path, the splits and languages found there."""
    from clients.benchmarks import BENCHMARKS

    reader = BENCHMARKS[name]
    for title, value in _statements(reader):
        typer.echo(f"{title + ':':<9} {value}")
    if path is not None or reader.bundled is not None:
        for part in reader.parts(path):
            files = ", ".join(file.name for file in part.files)
            typer.echo(f"{'found:':<9} {part.split} {part.lang} ({files})")


@benchmarks.command()
def check(
    name: NameArgument,
    split: Annotated[str, typer.Option(help="Split, such as train or dev.")],
    lang: Annotated[str, typer.Option(help="Language code.")],
    path: PathOption = None,
    mode: Annotated[str | None, typer.Option(help="As for `parsebank backfill`.")] = None,
) -> None:
    """Read a split from end to end and count it, without a service.

    Exits with 1 when the reader rejects anything, and shows the first rejections.
    """
    from clients.benchmarks import BENCHMARKS

    rejected = _count(BENCHMARKS[name].read(path, split, lang, mode))
    raise typer.Exit(int(rejected > 0))


def _statements(reader: Benchmark) -> list[tuple[str, str]]:
    return [
        ("name", reader.name),
        ("fields", ", ".join(reader.fields)),
        *(("label", f"{label.name}: {', '.join(label.names)}") for label in reader.labels),
        ("modes", ", ".join(reader.modes)),
        ("files", reader.layout),
        ("source", reader.source),
        ("licence", reader.licence),
    ]


def _count(items: Iterable[Item]) -> int:
    """Print the account of a split; the number of rejections."""
    from collections import Counter

    from syntax.examples import Rejection

    counts: Counter[str] = Counter()
    rejected = 0
    for item in items:
        if not isinstance(item, Rejection):
            counts["examples"] += 1
            counts.update(f"{label} {value}" for label, value in item.labels.items())
            continue
        rejected += 1
        counts[f"rejected: {item.reason}"] += 1
        if rejected <= _SHOWN:
            typer.echo(f"{item.example_id}: {item.reason}: {item.message}", err=True)
    for title, count in counts.items():
        typer.echo(f"{title}: {count:,}")
    return rejected
