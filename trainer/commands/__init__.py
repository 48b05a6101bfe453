"""The commands of this package; importing them is quick, running them imports torch."""

from __future__ import annotations

import typer

from trainer.commands.analyse import analyse
from trainer.commands.compare import compare
from trainer.commands.evaluate import evaluate
from trainer.commands.export import export, export_parser
from trainer.commands.language_test import language_test
from trainer.commands.picture import picture
from trainer.commands.predict import predict
from trainer.commands.probe import probe
from trainer.commands.reproduce import reproduce
from trainer.commands.studies import matrix, parsers, sweep
from trainer.commands.tables import tables
from trainer.commands.train import train
from trainer.commands.train_parser import train_parser
from trainer.commands.verify import verify


def register(app: typer.Typer) -> None:
    app.command()(train)
    app.command()(evaluate)
    app.command()(compare)
    app.command()(analyse)
    app.command()(tables)
    app.command()(sweep)
    app.command()(matrix)
    study = typer.Typer(help="Studies of one variable.", no_args_is_help=True)
    study.command("parsers")(parsers)
    app.add_typer(study, name="study")
    app.command()(predict)
    app.command()(picture)
    app.command()(verify)
    app.command()(probe)
    app.command()(reproduce)
    app.command()(export)
    app.command("export-parser")(export_parser)
    app.command("language-test")(language_test)
    app.command("train-parser", hidden=True)(train_parser)
