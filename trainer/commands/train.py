"""``parsebank train``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where
from syntax.commands.tables import print_table
from trainer.commands.shared import training_observers, whole_numbers
from trainer.environment import is_first_process, require_training

if TYPE_CHECKING:
    from rich.console import Console

    from trainer.options import Recipe
    from trainer.results import FinishedRun


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(help="Name of a recipe, or a run to repeat (its folder or result.json)."),
    ] = None,
    store: Where = DEFAULT_STORE,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change an option. Repeatable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the result. Default: runs/RECIPE-seedN; with several seeds "
            "runs/RECIPE, with one folder per seed."
        ),
    ] = None,
    seed: Annotated[
        list[str] | None,
        typer.Option(
            help="Short for --set training.seed=N. With several, as 1,2,3, train once per seed "
            "and write mean and deviation; finished seeds are not trained again."
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Short for --set training.max_steps=N.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint in the output folder.")
    ] = False,
    wandb: Annotated[
        bool, typer.Option("--wandb", help="Also send losses and scores to Weights & Biases.")
    ] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the recipes and exit.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Show every option of the recipe and exit.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with --list or --describe.")
    ] = False,
) -> None:
    """Train a recipe's model on stored features and write the result."""
    from trainer.recipes import RECIPES

    if show_list:
        rows = [(name, (make.__doc__ or "").partition("\n")[0]) for name, make in RECIPES.items()]
        print_table(("recipe", "what"), rows, as_json)
        return
    if as_json and not describe:
        raise typer.BadParameter(
            "--json goes with --list or --describe; a run writes its result to result.json"
        )
    from syntax.errors import SpecError
    from trainer.api import chosen_recipe

    require_training()
    seeds = whole_numbers(seed)
    if recipe is None:
        raise SpecError(f"which recipe? Known: {', '.join(RECIPES)}; see parsebank train --list")
    first = seeds[0] if seeds else None
    chosen = chosen_recipe(recipe, settings or (), seed=first, max_steps=max_steps)
    if describe:
        _describe(chosen, as_json)
        return
    _run(chosen, seeds, store, output, resume=resume, wandb=wandb)


def _describe(recipe: Recipe, as_json: bool) -> None:
    from trainer.options.settings import described

    rows = [
        (key, value if as_json else json.dumps(value), kind)
        for key, kind, value in described(recipe)
    ]
    title = f"{recipe.name} ({recipe.model.name}, {recipe.task.name})"
    print_table(("option", "value", "may be"), rows, as_json, title)


def _run(
    recipe: Recipe, seeds: list[int], store: str, output: Path | None, *, resume: bool, wandb: bool
) -> None:
    from rich.console import Console

    from trainer import api

    console = Console(markup=False, emoji=False)
    observers = partial(training_observers, console=console, wandb=wandb)
    if len(seeds) < 2:
        run = api.train(recipe, store, output, resume=resume, observers=observers)
        _summarise(console, run)
        return
    summary = api.train_seeds(
        recipe, seeds, store, output, resume=resume, observers=observers, on_seed=_announce
    )
    if summary is not None:
        folder = Path(next(iter(summary.runs.values()))).parent
        typer.echo(
            f"dev {summary.metric} over {len(summary.runs)} seeds: {summary.mean:.4f} +/- "
            f"{summary.deviation:.4f}; {folder / 'seeds.md'} has each"
        )


def _announce(seed: int, folder: Path, is_done: bool) -> None:
    if is_first_process():
        typer.echo(f"seed {seed} is done: {folder}" if is_done else f"seed {seed}: {folder}")


def _summarise(console: Console, run: FinishedRun) -> None:
    if not is_first_process():
        return
    result, metric = run.result, run.metric
    console.print(
        f"{result['steps']} steps, {result['examples_per_second']:.0f} examples/s, "
        f"loss {result['loss_start']:.4f} to {result['loss_end']:.4f}, "
        f"dev {metric} {result[metric]:.4f}; {run.folder / 'result.md'} has the rest",
        soft_wrap=True,
    )
