"""``parsebank models train udpipe``: train a model from a treebank, with live progress."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from syntax.strict_json import parse_json

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from service.parsers.base import ModelFile
    from service.training.train import Listener, TrainedModel


def train_udpipe(
    treebank: Annotated[Path, typer.Option(help="Folder with *-ud-{train,dev,test}.conllu.")],
    out: Annotated[Path, typer.Option(help="Folder for the model and its cards.")] = Path("models"),
    name: Annotated[
        str, typer.Option(help="Name of the model. Default: the treebank's, as in english-ewt.")
    ] = "",
    lang: Annotated[
        str,
        typer.Option(help="ISO code of the language. Default: en of en_ewt-ud-train.conllu."),
    ] = "",
    recipe: Annotated[
        str, typer.Option(help="Training recipe: default, full (also lemmas, XPOS, FEATS) or tiny.")
    ] = "default",
    jobs: Annotated[int, typer.Option(min=1, help="Components to train at the same time.")] = 1,
    treebank_version: Annotated[str, typer.Option(help="Release or commit of the treebank.")] = "",
    licence: Annotated[
        str, typer.Option(help="Licence. Default: from the treebank's README.")
    ] = "",
    attribution: Annotated[str, typer.Option(help="Authors. Default: from the README.")] = "",
) -> None:
    """Train a UDPipe model, score it on dev and test, and write its model cards.

    An interrupted training goes on where it stopped when the same command is given again. A model
    written into the models folder (PARSEBANK_MODELS_DIR) is recorded in its registry file too.
    """
    # Importing the backend costs more than the command line may take to start.
    from service.parsers.udpipe.backend import model_in
    from service.training.recipe import RECIPES
    from service.training.train import train
    from syntax.trees.conllu.treebank import open_treebank

    bank = open_treebank(
        treebank, version=treebank_version, licence=licence, attribution=attribution
    )
    model_name = name or bank.name.removeprefix("UD_").lower()
    language = lang or bank.language
    told = {
        "treebank": bank.name,
        "name": model_name,
        "lang": language,
        "recipe": recipe,
        "treebank-version": treebank_version,
        "licence": licence,
        "attribution": attribution,
    }
    with _bars() as bars:
        trained = train(
            bank,
            out,
            RECIPES[recipe],
            _listener(bars),
            name=model_name,
            language=language,
            command=_command(told),
            jobs=jobs,
        )
    card = parse_json(trained.card.read_text(encoding="utf-8"))
    # At once: until then, an earlier record of this name does not fit.
    record_trained(model_in(trained.model), card)
    _print_result(trained, card["columns"])


def _command(told: dict[str, str]) -> str:
    """Command with options that decide the model, and no paths of this machine."""
    options = [f"--{name} {shlex.quote(value)}" for name, value in told.items() if value]
    return " \\\n  ".join(["parsebank models train udpipe", *options])


def _bars() -> Bars:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.fields[component]:>10}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )


def _listener(bars: Bars) -> Listener:
    """Show one bar per component, from several threads: bars have a lock."""
    from service.training.train import Progress

    tasks = {}

    def listen(report: Progress) -> None:
        if report.component not in tasks:
            tasks[report.component] = bars.add_task("", component=report.component)
        bars.update(
            tasks[report.component],
            completed=report.done,
            total=report.total,
            description=report.message,
        )

    return listen


def record_trained(model: ModelFile, card: Mapping[str, Any]) -> None:
    """Note a model that lies in the models folder in its registry file, and say what it answers."""
    from service.parsers import find_parser
    from service.settings import read_settings
    from service.training.cards import note_trained

    settings = read_settings()
    if note_trained(settings, model, card):
        typer.echo(f"recorded in {settings.models_dir}")
        for lang in model.langs:
            answers = find_parser(settings, lang=lang)
            typer.echo(f"requests in {lang!r} that name no parser get {answers.name}")


def _print_result(trained: TrainedModel, columns: Collection[str]) -> None:
    from service.training.cards import filled_metrics

    metrics = filled_metrics(columns)
    for split, by_input in trained.scores.items():
        for kind, figures in by_input.items():
            cells = "  ".join(f"{metric} {figures[metric]:.2f}" for metric in metrics)
            typer.echo(f"{split} {kind}: {cells}")
    typer.echo(f"{trained.model} ({trained.model.stat().st_size:,} bytes), {trained.readme}")
