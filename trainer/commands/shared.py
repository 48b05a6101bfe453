"""Options and checks that commands share; nothing here imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from trainer.environment import is_first_process

if TYPE_CHECKING:
    from rich.console import Console

    from trainer.options import Recipe
    from trainer.progress import Observer

Number = TypeVar("Number", int, float)

Langs = Annotated[
    list[str] | None,
    typer.Option("--lang", help="Languages to score, as en,fr. Default: all of the split."),
]
ParserOption = Annotated[
    list[str] | None,
    typer.Option(
        "--parser",
        help="Parser whose trees to read, by name or fingerprint, or one per language, as "
        "en:NAME,fr:NAME. Needed if several are stored and none is the model's.",
    ),
]


def quiet_transformers() -> None:
    """Turn off the progress bars of loading weights."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()


def whole_numbers(given: list[str] | None) -> list[int]:
    """Seeds, given as 1,2,3."""
    return listed_numbers(int, given, "whole numbers, as 1,2,3")


def listed_numbers(kind: type[Number], given: list[str] | None, wanted: str) -> list[Number]:
    from syntax.lists import listed

    try:
        return [kind(one) for one in listed(given)]
    except ValueError as error:
        raise typer.BadParameter(f"{error}; give {wanted}") from None


@contextmanager
def training_observers(
    recipe: Recipe, output: Path, *, console: Console, wandb: bool
) -> Iterator[list[Observer]]:
    """TensorBoard and a progress bar, and W&B if asked; none beside the first process."""
    quiet_transformers()
    from trainer.observers import TensorBoard, WeightsAndBiases, progress_bar

    if not is_first_process():
        yield []
        return
    with (
        TensorBoard(output / "tensorboard") as board,
        progress_bar(console) as bar,
        WeightsAndBiases(output, recipe) if wandb else nullcontext() as further,
    ):
        yield [board, bar, *([further] if further else [])]


def one_language(lang: str) -> str:
    from syntax.errors import SpecError
    from syntax.lists import listed

    langs = listed(lang)
    if len(langs) > 1:
        raise SpecError(f"`lang={lang}` names {len(langs)} languages; give one at a time")
    return langs[0]
