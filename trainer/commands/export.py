"""``parsebank export``."""

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
