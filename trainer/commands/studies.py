"""``parsebank sweep`` and ``parsebank matrix``: studies of one recipe."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import AsJson, print_json, print_table
from trainer.commands.shared import training_observers, whole_numbers
from trainer.environment import require_training

if TYPE_CHECKING:
    from trainer.options import Recipe

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
