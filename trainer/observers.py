"""Observers of a run: TensorBoard, Weights & Biases, and a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

from syntax.extras import missing_extra
from trainer.options import Recipe
from trainer.progress import Evaluation, Report


class TensorBoard:
    """Writes every report and evaluation as scalars, by step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def __call__(self, event: Report | Evaluation) -> None:
        """Take one event; the first makes the folder, so that a failed run leaves none."""
        self._writer = self._writer or SummaryWriter(str(self._folder))
        for name, value in _scalars(event).items():
            self._writer.add_scalar(name, value, event.step)

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()


class WeightsAndBiases:
    """Sends the same scalars to Weights & Biases, as its ``WANDB_`` variables say."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        self._wandb, self._folder, self._recipe = _wandb(), folder, recipe
        self._run: Any = None

    def __call__(self, event: Report | Evaluation) -> None:
        # Only the first of several processes gets events, and only it may open a run.
        self._run = self._run or self._begun()
        self._run.log(_scalars(event), step=event.step)

    def _begun(self) -> Any:
        return self._wandb.init(
            project=self._recipe.name,
            name=self._folder.name,
            dir=str(self._folder),
            config=self._recipe.to_json(),
            reinit="create_new",
        )

    def __enter__(self) -> WeightsAndBiases:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._run is not None:
            self._run.finish(exit_code=0 if error is None else 1)


@contextmanager
def progress_bar(console: Console) -> Iterator[Bar]:
    columns = (
        TextColumn("training", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    bar = Bar(Progress(*columns, console=console))
    try:
        yield bar
    finally:
        bar.stop()


class Bar:
    """Shows events, from the first one on, on a progress bar, and evaluations in lines above it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, event: Report | Evaluation) -> None:
        if not self._progress.tasks:
            self._progress.add_task("", total=None)
            self._progress.start()
        if isinstance(event, Evaluation):
            self._progress.console.print(
                f"step {event.step}: dev {event.metric} {event.headline:.4f}", highlight=False
            )
            return
        self._progress.update(
            self._progress.task_ids[0],
            completed=event.step,
            total=event.total_steps,
            description=(
                f"loss {event.losses['loss']:.4f}  {event.examples_per_second:.0f} examples/s  "
                f"data wait {event.data_share:.1%}"
            ),
        )

    def stop(self) -> None:
        if self._progress.tasks:
            self._progress.stop()


def _wandb() -> Any:
    try:
        import wandb
    except ImportError:
        raise missing_extra("--wandb needs wandb", "wandb") from None
    return wandb


def _scalars(event: Report | Evaluation) -> dict[str, float]:
    if isinstance(event, Evaluation):
        numbers = {name: value for name, value in event.scores.items() if isinstance(value, float)}
        return {f"dev/{name}": value for name, value in numbers.items()}
    losses = {f"train/{name}": value for name, value in event.losses.items()}
    return {
        **losses,
        "train/learning_rate": event.learning_rate,
        "speed/examples_per_second": event.examples_per_second,
        "speed/data_share": event.data_share,
    }
