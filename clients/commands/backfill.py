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
    own_jobs,
    service_address,
)
from syntax.commands.tables import AsJson

WholeFiles = Annotated[
    bool, typer.Option("--whole-files", help="Of `text`: a file is one text, not a line.")
]
DevShare = Annotated[
    float | None,
    typer.Option(
        help="Where files name no splits: this share of the texts is `dev`, by a hash of their "
        "ids, and the rest `train`."
    ),
]


def backfill(
    benchmark: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of a reader; see `parsebank benchmarks list`."),
    ],
    split: Annotated[
        list[str],
        typer.Option(help="Splits, as train,dev; `all` reads every split found."),
    ],
    lang: Annotated[
        list[str],
        typer.Option(help="Language codes, as en,fr; `all` reads every language found."),
    ],
    path: Annotated[
        Path | None, typer.Option(help="Folder or file of the benchmark; `sample` needs none.")
    ] = None,
    parser: Annotated[
        list[str] | None,
        typer.Option(
            help="Parser, or one per language (en:NAME,fr:NAME). Default: each language's parser."
        ),
    ] = None,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(
            help="Names or paths of tokenizers, as A,B. Default: the service's. Texts are parsed "
            "once for all tokenizers."
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="raw, sentence, pretokenized, retokenize, tokens_mwt or gold. Default: the "
            "benchmark's first mode."
        ),
    ] = None,
    expand_words: Annotated[
        bool,
        typer.Option(
            "--expand-words",
            help="Replace multiword tokens by their words: `de el`, not `del`.",
        ),
    ] = False,
    keep_tokens: Annotated[
        bool,
        typer.Option(
            "--keep-tokens",
            help="With --expand-words, leave multiword tokens before their words: `del de el`, as "
            "MicroBERT's successor is released.",
        ),
    ] = False,
    long_sentences: Annotated[
        bool,
        typer.Option(
            "--split-long",
            help="Split sentences that exceed the service's limit, instead of dropping the "
            "example.",
        ),
    ] = False,
    max_pieces: Annotated[
        int | None,
        typer.Option(
            min=3,
            help="Cut tokens before they are parsed, so that a sequence has at most so many "
            "pieces of the --tokenizer, special tokens included; drop gold trees that are longer.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the dataset in the store. Default: the benchmark's name."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Read only the first items of each part.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="For `table`: text columns in order, as A,B; each may be FIELD=COLUMN."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="For `table`: labels, each as NAME[:KIND[:FIELD]][=COLUMN]."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="For `table`: column of the ids.")
    ] = None,
    whole_files: WholeFiles = False,
    dev_share: DevShare = None,
    matrices: Annotated[
        bool, typer.Option("--matrices/--no-matrices", help="Also store the matrices.")
    ] = True,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only report what would be parsed and stored, the time and the size."
        ),
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="With --store: process only shard K of N, as one task of an array job.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Also write the report to this file, as JSON."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if any example is dropped.")
    ] = False,
    engine: EngineOption = None,
    scheduler: SchedulerOption = None,
    url: UrlOption = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Parse a benchmark, align it with tokenizers and store the features.

    Stored texts are not parsed again: to continue an interrupted backfill, start it again. A part
    that cannot be read or parsed does not affect the others.
    """
    from clients.commands.parts import chosen_reader, wanted_parts
    from clients.commands.plan import BackfillPlan
    from clients.commands.progress import Watcher
    from clients.commands.reports import check_report, show_outcome, write_report
    from clients.cut import piece_counter
    from clients.shards import Shard
    from syntax.errors import SpecError
    from syntax.lists import ParserChoice, listed

    if keep_tokens and not expand_words:
        raise SpecError("--keep-tokens says what --expand-words leaves; give both, or neither")
    reader = chosen_reader(
        benchmark,
        listed(columns),
        listed(label),
        id_column,
        whole_files=whole_files,
        dev_share=dev_share,
    )
    if max_pieces is not None:  # before anything is read
        for folder in listed(tokenizer):
            piece_counter(Path(folder))
    parts = wanted_parts(reader, path, split, lang)
    parsers = ParserChoice.read(parser)
    parsers.check({part_lang for _, part_lang in parts})
    plan = BackfillPlan(
        reader,
        path,
        parts,
        listed(tokenizer) or (None,),
        name=name,
        mode=mode,
        limit=limit,
        expand_words=expand_words,
        keep_tokens=keep_tokens,
        max_pieces=max_pieces,
        shard=Shard.read(shard) if shard else None,
        options={
            "parser": str(parsers) or None,
            "matrices": matrices,
            "long_sentences": "split" if long_sentences else None,
        },
    )
    plan.check()
    if report is not None:
        check_report(report)
    address = service_address(url, store)
    settings = engine_settings(engine, scheduler, address)
    with (
        own_jobs(shard, address) as own,
        connect(url, store, plan.names, ahead="worker", **settings, **own) as client,
        Watcher() as watcher,
    ):
        outcome = plan.forecast(client, watcher) if dry_run else plan.run(client, watcher)
    show_outcome(outcome, watcher.seconds, as_json)
    if report is not None:
        write_report(report, outcome, watcher.seconds)
    raise typer.Exit(outcome.exit_code(strict=strict))
