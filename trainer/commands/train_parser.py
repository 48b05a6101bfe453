"""``parsebank train-parser``: the trainer's part of ``parsebank models train own``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trainer.commands.shared import quiet_transformers
from trainer.environment import require_training

if TYPE_CHECKING:
    from rich.progress import Progress

    from trainer.parsing.training import Report


def train_parser(
    folder: Path,
    treebank: Annotated[list[Path], typer.Option()],
    encoder: Annotated[str, typer.Option()],
    epochs: Annotated[int, typer.Option()],
    seed: Annotated[int, typer.Option()],
    lang: Annotated[list[str] | None, typer.Option()] = None,
    corpus: Annotated[list[Path] | None, typer.Option()] = None,
    whole_vocabulary: Annotated[bool, typer.Option("--whole-vocabulary")] = False,
    layers: int | None = None,
    precision: Annotated[Literal["fp32", "bf16"], typer.Option()] = "fp32",
    treebank_version: str = "",
    licence: str = "",
    attribution: str = "",
) -> None:
    """Train a parser and write its programs; `models train own` calls it and has the same options.

    The same command goes on after the last pass that it finished.
    """
    require_training()
    quiet_transformers()
    from syntax.trees.conllu.treebank import open_treebank
    from trainer.parsing.build import ParserPlan, build_parser
    from trainer.parsing.training import TrainingOptions

    banks = [
        open_treebank(one, version=treebank_version, licence=licence, attribution=attribution)
        for one in treebank
    ]
    plan = ParserPlan(
        treebanks=banks,
        encoder=encoder,
        languages=lang or list(dict.fromkeys(bank.language for bank in banks)),
        corpora=corpus or (),
        whole_vocabulary=whole_vocabulary,
        layers=layers,
        training=TrainingOptions(epochs=epochs, seed=seed, precision=precision),
    )
    with _bar() as bar:
        build_parser(plan, folder, _listener(bar))


def _bar() -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )


def _listener(bar: Progress) -> Callable[[Report], None]:
    task = bar.add_task("", total=None)

    def listen(report: Report) -> None:
        loss = sum(report.losses.values())
        bar.update(task, completed=report.step, total=report.steps, description=f"loss {loss:.2f}")
        if report.dev:
            cells = "  ".join(f"{part} {share:.2f}" for part, share in report.dev.items())
            bar.console.print(f"dev: {cells}", markup=False, highlight=False)

    return listen
