"""``parsebank export`` and ``parsebank export-parser``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainer.commands.shared import quiet_transformers
from trainer.environment import require_training


def export(
    run: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    folder: Annotated[Path, typer.Argument(help="Folder for the encoder; new or empty.")],
) -> None:
    """Write the encoder of a run as Hugging Face has encoders, for model.encoder of a recipe."""
    require_training()
    quiet_transformers()
    from trainer.evaluation.export import export_encoder

    export_encoder(run, folder)
    typer.echo(f"the encoder of {run} is in {folder}; read it with --set model.encoder={folder}")


def export_parser(
    run: Annotated[Path, typer.Argument(help="Output of a run of dependency.v1.")],
    folder: Annotated[Path, typer.Argument(help="Folder for the parser.")],
) -> None:
    """Write a trained parser as files that `parsebank models add` takes, here or elsewhere."""
    require_training()
    from trainer.results import read_result

    read_result(run)
    from trainer.evaluation import parser_export

    quiet_transformers()
    card = parser_export.export_parser(run, folder)
    tags = ", ".join(card["tags"]) or "no tags"
    typer.echo(f"exported {len(card['relations'])} relations, {tags}, to {folder}")
