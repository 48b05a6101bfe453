"""``parsebank backfill``: a benchmark into the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clients.commands.connect import StoreOption, UrlOption, connect

if TYPE_CHECKING:
    from clients.jobs import Job


def backfill(
    benchmark: Annotated[
        str, typer.Argument(metavar="NAME", help="A reader of `parsebank benchmarks list`.")
    ],
    split: Annotated[str, typer.Option(help="Split, such as train or dev.")],
    lang: Annotated[str, typer.Option(help="Language code.")],
    path: Annotated[
        Path | None, typer.Option(help="Folder or file of the benchmark; `sample` needs none.")
    ] = None,
    parser: Annotated[str | None, typer.Option(help="Parser; else the language's own.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Name or path of a tokenizer; else the service's own.")
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
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many items.")] = None,
    matrices: Annotated[
        bool, typer.Option("--matrices/--no-matrices", help="Store the matrices as well.")
    ] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on any drop.")] = False,
    url: UrlOption = None,
    store: StoreOption = None,
) -> None:
    """Parse a benchmark split, align it to a tokenizer and store the features.

    What was parsed before is not parsed again: an interrupted backfill is simply started again.
    """
    from clients.benchmarks import BENCHMARKS
    from clients.commands.progress import Watcher, account

    reader = BENCHMARKS[benchmark]
    spec = reader.spec(split, lang, name=name, mode=mode)
    items = reader.read(path, split, lang, mode)
    with connect(url, store) as client, Watcher(f"{spec.name} {split} {lang}") as watcher:
        job = client.backfill(
            spec,
            watcher.sending(items, limit),
            tokenizer=tokenizer,
            parser=parser,
            matrices=matrices,
            long_sentences="split" if split_long else None,
        )
        job = watcher.watch(client, job)
    account(job, watcher.seconds)
    raise typer.Exit(exit_code(job, strict=strict))


def exit_code(job: Job, *, strict: bool = False) -> int:
    """0 for a job that is done and, when strict, dropped nothing."""
    return int(job.state != "done" or (strict and bool(job.counts.dropped)))
