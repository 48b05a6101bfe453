"""``parsebank train``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import print_table
from trainer.commands.shared import is_first_process, quiet_transformers, require_training

if TYPE_CHECKING:
    from rich.console import Console

    from trainer.options import Recipe
    from trainer.progress import Observer


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(help="Name of a recipe, or a run to repeat: its folder or result.json."),
    ] = None,
    store: Where = DEFAULT_STORE,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change an option; may be repeated."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the result, runs/RECIPE-seedN by default; of several seeds, for "
            "one folder of each, runs/RECIPE by default."
        ),
    ] = None,
    seed: Annotated[
        list[str] | None,
        typer.Option(
            help="Short for --set training.seed=N. Of several, as 1,2,3, it trains once for each, "
            "and sums up mean and deviation; seeds that are done already are not trained again."
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Short for --set training.max_steps=N.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint in the output folder.")
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
    """Train a recipe's model on stored features, and write result.json and result.md."""
    if show_list:
        return _list_recipes(as_json)
    if as_json and not describe:
        raise typer.BadParameter(
            "--json goes with --list or --describe; a run writes its result to result.json"
        )
    require_training()
    seeds = _seeds(seed)
    chosen = _chosen(recipe, settings or [], seeds[0] if seeds else None, max_steps)
    if describe:
        return _describe(chosen, as_json)
    if len(seeds) > 1:
        return _train_seeds(
            chosen, seeds, store, output or Path("runs") / chosen.name, resume, wandb
        )
    return _train(chosen, store, output or _default_output(chosen), resume, wandb)


def _seeds(given: list[str] | None) -> list[int]:
    from syntax.lists import listed

    try:
        return [int(one) for one in listed(given)]
    except ValueError as error:
        raise typer.BadParameter(f"{error}; give whole numbers, as 1,2,3") from None


def _list_recipes(as_json: bool) -> None:
    from trainer.recipes import RECIPES

    rows = [(name, (make.__doc__ or "").partition("\n")[0]) for name, make in RECIPES.items()]
    print_table(("recipe", "what"), rows, as_json)


def _chosen(
    name: str | None, settings: list[str], seed: int | None, max_steps: int | None
) -> Recipe:
    from syntax.errors import SpecError
    from trainer.options.settings import with_settings
    from trainer.recipes import RECIPES

    if name is None:
        raise SpecError(f"which recipe? Known: {', '.join(RECIPES)}; see parsebank train --list")
    recipe = _recipe(name)
    short = {"training.seed": seed, "training.max_steps": max_steps}
    given = [f"{key}={value}" for key, value in short.items() if value is not None]
    return with_settings(recipe, [*settings, *given])


def _recipe(name: str) -> Recipe:
    from trainer.recipes import RECIPES
    from trainer.results import recipe_of

    is_run = name.endswith(".json") or Path(name).is_dir()
    return recipe_of(Path(name)) if is_run and name not in RECIPES else RECIPES[name]()


def _describe(recipe: Recipe, as_json: bool) -> None:
    from trainer.options.settings import described

    rows = [
        (key, value if as_json else json.dumps(value), kind)
        for key, kind, value in described(recipe)
    ]
    title = f"{recipe.name} ({recipe.model.name}, {recipe.task.name})"
    print_table(("option", "value", "may be"), rows, as_json, title)


def _default_output(recipe: Recipe) -> Path:
    return Path("runs") / f"{recipe.name}-seed{recipe.training.seed}"


def _train(recipe: Recipe, store: str, output: Path, resume: bool, wandb: bool) -> None:
    from rich.console import Console

    from trainer.loop import train as run_recipe
    from trainer.report import result_of
    from trainer.results import write_result

    _check_free(output, resume)
    quiet_transformers()
    console = Console(markup=False, emoji=False)
    with open_there(store) as opened, _observers(recipe, output, console, wandb) as observers:
        run = run_recipe(recipe, opened, output, resume=resume, observers=observers)
    if is_first_process():
        result = result_of(run)
        write_result(result, output)
        _summarise(console, result, output)


@contextmanager
def _observers(
    recipe: Recipe, output: Path, console: Console, wandb: bool
) -> Iterator[list[Observer]]:
    """Who is told how the run goes; nobody in the other processes of several."""
    from trainer.observers import TensorBoard, progress_bar

    if not is_first_process():
        yield []
        return
    with (
        TensorBoard(output / "tensorboard") as board,
        progress_bar(console) as bar,
        _further_observer(output, recipe, wandb) as further,
    ):
        yield [board, bar, *([further] if further else [])]


def _further_observer(
    output: Path, recipe: Recipe, wandb: bool
) -> AbstractContextManager[Observer | None]:
    from trainer.observers import WeightsAndBiases

    return WeightsAndBiases(output, recipe) if wandb else nullcontext()


def _train_seeds(
    recipe: Recipe, seeds: list[int], store: str, output: Path, resume: bool, wandb: bool
) -> None:
    from trainer.checkpoint import has_checkpoint
    from trainer.loop import CHECKPOINT
    from trainer.options.settings import with_settings
    from trainer.results import RESULT, is_result_of

    runs = {seed: output / f"seed{seed}" for seed in dict.fromkeys(seeds)}
    for seed, folder in runs.items():
        one = with_settings(recipe, [f"training.seed={seed}"])
        if (folder / RESULT).exists() and is_result_of(folder, one):
            _say(f"seed {seed} is done: {folder}")
        else:
            _say(f"seed {seed}: {folder}")
            # Of a command that was killed, the later seeds have not begun.
            _train(one, store, folder, resume and has_checkpoint(folder / CHECKPOINT), wandb)
    if is_first_process():
        _sum_up(runs, output)


def _sum_up(runs: dict[int, Path], output: Path) -> None:
    from trainer.seeds import summarise_seeds, write_summary

    summary = summarise_seeds(runs)
    write_summary(summary, output)
    typer.echo(
        f"dev {summary.metric} over {len(runs)} seeds: {summary.mean:.4f} +/- "
        f"{summary.deviation:.4f}; {output / 'seeds.md'} has each"
    )


def _say(text: str) -> None:
    if is_first_process():
        typer.echo(text)


def _check_free(output: Path, resume: bool) -> None:
    from syntax.errors import SpecError
    from trainer.results import RESULT

    if not resume and (output / RESULT).exists():
        raise SpecError(
            f"{output} already holds the result of a run; give another --output, or --resume"
        )


def _summarise(console: Console, result: dict[str, Any], output: Path) -> None:
    metric = result["metric"]
    console.print(
        f"{result['steps']} steps, {result['examples_per_second']:.0f} examples/s, "
        f"loss {result['loss_start']:.4f} to {result['loss_end']:.4f}, "
        f"dev {metric} {result[metric]:.4f}; {output / 'result.md'} has the rest",
        soft_wrap=True,
    )
