"""``parsebank export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainer.commands.shared import quiet_transformers
from trainer.environment import require_training


def export(
    run: Annotated[Path, typer.Argument(help="Output of a run of dependency.v1.")],
    output: Annotated[Path, typer.Option(help="Folder to write the parser to.")],
) -> None:
    """Write a trained parser as files that `parsebank models add` takes, here or elsewhere."""
    require_training()
    from trainer.evaluation.export import export_parser

    quiet_transformers()
    card = export_parser(run, output)
    tags = ", ".join(card["tags"]) or "no tags"
    typer.echo(f"exported {len(card['relations'])} relations, {tags}, to {output}")
