"""``parsebank sweep``, ``matrix`` and ``study``: studies of one recipe."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import AsJson, print_json, print_table
from trainer.commands.shared import listed_numbers, training_observers, whole_numbers
from trainer.environment import require_training

if TYPE_CHECKING:
    from trainer.options import DataOptions, Recipe

RecipeName = Annotated[str, typer.Argument(help="Name of a recipe, or a run to vary.")]
Seeds = Annotated[
    list[str] | None,
    typer.Option("--seeds", help="Seeds of each point, as 1,2,3. Default: the recipe's."),
]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Train side by side on the workers of this scheduler (tcp://HOST:8786), which see "
        "the same folders. Needs the extra dask."
    ),
]


def sweep(
    recipe: RecipeName,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE,VALUE",
            help="Values of an option; all combinations are trained. Repeatable. A value with "
            'commas is a JSON list, or in double quotes: lang="en,fr",de.',
        ),
    ],
    store: Where = DEFAULT_STORE,
    seeds: Seeds = None,
    split: Annotated[str, typer.Option(help="Split to score the chosen point on.")] = "test",
    lang: Annotated[
        list[str] | None,
        typer.Option("--lang", help="Languages to score it in, as en,fr. Default: all."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the study. Default: runs/RECIPE-sweep.")
    ] = None,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Train a recipe with each combination of settings, choose by dev, and score the choice.

    Runs that are finished are not trained again, and an interrupted one goes on from its
    checkpoint.
    """
    require_training()
    from syntax.lists import listed
    from trainer.api import RUNS, chosen_recipe
    from trainer.studies.sweep import sweep as run_sweep

    chosen = chosen_recipe(recipe)
    folder = output or RUNS / f"{chosen.name}-sweep"
    numbers = whole_numbers(seeds) or [chosen.training.seed]
    with open_there(store) as opened:
        found = run_sweep(
            *(chosen, settings, numbers, opened, folder, split, listed(lang)), **_how(dask)
        )
    _show(found, as_json)
    for note in found.notes():
        typer.echo(note, err=True)
    typer.echo(f"Every number is in {folder / 'sweep.json'}", err=True)
    if found.notes():
        raise typer.Exit(1)


def matrix(
    recipe: RecipeName,
    store: Where = DEFAULT_STORE,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change an option. Repeatable."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(help="Languages to train on, as en,fr. Default: all with both splits."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Languages to score. Default: all of the split."),
    ] = None,
    seeds: Seeds = None,
    split: Annotated[str, typer.Option(help="Split to score on.")] = "test",
    output: Annotated[
        Path | None, typer.Option(help="Folder of the study. Default: runs/RECIPE-matrix.")
    ] = None,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Train a recipe on each language of its dataset, and score each model on each language.

    Shows the mean of each row (As-source) and column (As-target) without the language itself, and
    how losses correlate with distances of word order. Finished runs are not trained or scored
    again.
    """
    require_training()
    from syntax.lists import listed
    from trainer.api import RUNS, chosen_recipe
    from trainer.studies.matrix import language_matrix

    chosen: Recipe = chosen_recipe(recipe, settings or ())
    folder = output or RUNS / f"{chosen.name}-matrix"
    numbers = whole_numbers(seeds) or [chosen.training.seed]
    langs = (listed(source), listed(target))
    with open_there(store) as opened:
        found = language_matrix(chosen, numbers, opened, folder, split, *langs, **_how(dask))
    _show(found, as_json)
    for note in found.told():
        typer.echo(note, err=True)
    typer.echo(f"Every number is in {folder / 'matrix.json'}", err=True)
    if len(found.cells) < len(found.sources) * len(found.targets):
        raise typer.Exit(1)


def parsers(
    recipe: RecipeName,
    parser: Annotated[
        list[str],
        typer.Option(
            help="A parser, or one per language (en:NAME,fr:NAME). Repeatable; all are compared "
            "with the first."
        ),
    ],
    noise: Annotated[
        list[str] | None,
        typer.Option(
            help="Also train on the first parser's trees with this share of heads replaced, as "
            "0.1,0.2."
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Reader of `parsebank backfill` with which each parser first parses the recipe's "
            "dataset; what is stored is not parsed again. Default: all is stored.",
        ),
    ] = None,
    path: Annotated[
        Path | None, typer.Option(help="Folder or file of the benchmark; `sample` needs none.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="Mode of the backfill. Default: the benchmark's first.")
    ] = None,
    store: Where = DEFAULT_STORE,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change an option. Repeatable."),
    ] = None,
    seeds: Seeds = None,
    split: Annotated[str, typer.Option(help="Split to score on.")] = "test",
    lang: Annotated[
        list[str] | None,
        typer.Option("--lang", help="Languages to score, as en,fr. Default: those of training."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the study. Default: runs/RECIPE-parsers.")
    ] = None,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Train a recipe on the trees of several parsers, and compare the scores with the first's.

    Finished runs are not trained or scored again.
    """
    require_training()
    from syntax.lists import listed
    from trainer.api import RUNS, chosen_recipe
    from trainer.studies.parsers import parser_study

    chosen = chosen_recipe(recipe, settings or ())
    folder = output or RUNS / f"{chosen.name}-parsers"
    numbers = whole_numbers(seeds) or [chosen.training.seed]
    shares = listed_numbers(float, noise, "shares from 0 to 1, as 0.1,0.2")
    langs = listed(lang)
    if benchmark is None and (path or mode):
        raise typer.BadParameter("--path and --mode are of a backfill; name its --benchmark")
    if benchmark is not None:
        parser = _parsed(benchmark, path, mode, chosen.data, parser, split, langs, store)
    with open_there(store) as opened:
        found = parser_study(
            *(chosen, parser, numbers, opened, folder, split, langs, shares), **_how(dask)
        )
    _show(found, as_json)
    for note in found.notes:
        typer.echo(note, err=True)
    typer.echo(f"Every number is in {folder / 'parsers.json'}", err=True)
    if found.notes:
        raise typer.Exit(1)


def _parsed(
    benchmark: str,
    path: Path | None,
    mode: str | None,
    data: DataOptions,
    parsers: Sequence[str],
    split: str,
    langs: Sequence[str],
    store: str,
) -> list[str]:
    """Backfill a benchmark with each parser; gives the parsers by the names that the store has."""
    from clients.commands.connect import connect
    from clients.commands.parts import chosen_reader, wanted_parts
    from clients.commands.plan import BackfillPlan
    from clients.commands.progress import Watcher
    from clients.commands.reports import failures, notes
    from syntax.lists import ParserChoice, listed
    from trainer.studies.parsers import each_language

    trained = ["all"] if data.lang == "*" else listed(data.lang)
    reader = chosen_reader(benchmark)
    parts = [
        *wanted_parts(reader, path, [data.train_split, data.dev_split], trained),
        *wanted_parts(reader, path, [split], langs or trained),
    ]
    plans = []
    for choice in map(ParserChoice.read, parsers):
        choice.check({lang for _, lang in parts})
        options = {"parser": str(choice) or None}
        once, names = list(dict.fromkeys(parts)), (data.tokenizer,)
        plan = BackfillPlan(reader, path, once, names, data.dataset, mode, options=options)
        plan.check()
        plans.append(plan)
    checked = {
        kind: [one for plan in plans for one in plan.names[kind]]
        for kind in ("parsers", "tokenizers")
    }
    with connect(None, store, checked) as client, Watcher() as watcher:
        outcomes = [plan.run(client, watcher) for plan in plans]
    for outcome in outcomes:
        for job in outcome.jobs:
            counts = job.counts
            typer.echo(
                f"{job.dataset} {job.split} {job.lang} by {job.parser}: {counts.stored} stored, "
                f"{counts.already_stored} already, {sum(counts.dropped.values())} dropped",
                err=True,
            )
            for failure in failures(job):
                typer.echo(failure, err=True)
        for note in notes(outcome):
            typer.echo(note, err=True)
    if any(outcome.exit_code() for outcome in outcomes):
        raise typer.Exit(1)
    return [each_language({job.lang: job.parser for job in outcome.jobs}) for outcome in outcomes]


def _how(dask: str | None) -> dict[str, Any]:
    from rich.console import Console

    console = Console(markup=False, emoji=False, stderr=True)
    observers = partial(training_observers, console=console, wandb=False)
    return {"dask": dask, "observers": observers, "told": partial(typer.echo, err=True)}


def _show(found: Any, as_json: bool) -> None:
    if as_json:
        print_json(found.to_json())
    else:
        print_table(found.header(), found.rows(), title=found.title())
