"""``parsebank serve`` and ``parsebank models``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.parsers.udpipe.train_command import train_udpipe

if TYPE_CHECKING:
    from service.parsers import ModelFile
    from service.settings import Settings

ModelsDir = Annotated[
    Path | None, typer.Option(help="Folder of further models (PARSEBANK_MODELS_DIR).")
]


def register(app: typer.Typer) -> None:
    """Add this package's commands."""
    app.command()(serve)
    models = typer.Typer(help="Parser models: list, verify, train.", no_args_is_help=True)
    models.command("list")(list_command)
    models.command("verify")(verify_command)
    training = typer.Typer(help="Train a model from a treebank.", no_args_is_help=True)
    training.command("udpipe")(train_udpipe)
    # A single sub-command would otherwise be merged into its parent.
    training.callback()(_backends)
    models.add_typer(training, name="train")
    app.add_typer(models, name="models")


def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind; loopback by default.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind.")] = None,
    store: Annotated[str | None, typer.Option(help="Folder or s3://bucket/prefix.")] = None,
    models_dir: ModelsDir = None,
    workers: Annotated[int | None, typer.Option(help="Parser processes per model.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning, error.")] = None,
    allow_remote: Annotated[
        bool | None, typer.Option("--allow-remote", help="Allow a public address.")
    ] = None,
) -> None:
    """Run the service. Every setting is also read from PARSEBANK_<SETTING>."""
    from service.server import run_server

    given = {
        "host": host,
        "port": port,
        "store": store,
        "models_dir": models_dir,
        "workers": workers,
        "log_level": log_level,
        "allow_remote": allow_remote,
    }
    run_server(_settings(**given))


def list_command(models_dir: ModelsDir = None) -> None:
    """List the parsers that can be asked for."""
    from rich.console import Console
    from rich.table import Table

    from service.parsers import list_models

    table = Table("name", "languages", "treebank", "licence", "MB")
    for model in list_models(_settings(models_dir=models_dir)):
        facts = (str(model.card.get(key, "?")) for key in ("treebank", "licence"))
        size = f"{model.size / 1e6:.1f}"
        table.add_row(model.name, ", ".join(model.langs) or "?", *facts, size)
    Console().print(table)


def verify_command(models_dir: ModelsDir = None) -> None:
    """Check every model's checksum against its card, and load it."""
    from service.parsers import list_models

    verdicts = [_verdict(model) for model in list_models(_settings(models_dir=models_dir))]
    if not all(verdicts):
        raise typer.Exit(1)


def _backends() -> None:
    """Train a model from a treebank."""


def _verdict(model: ModelFile) -> bool:
    from service.parsers import load_parser
    from syntax.errors import ParsebankError

    try:
        identity = load_parser(model).identity
    except ParsebankError as error:
        typer.echo(f"FAILED  {model.name}: {error.message}")
        return False
    recorded = "" if model.sha256 else " (no card, so no checksum to compare)"
    typer.echo(f"ok      {model.name} {identity.fingerprint}{recorded}")
    return True


def _settings(**given: Any) -> Settings:
    """Settings from the environment, overridden by the options that were given."""
    from pydantic import ValidationError

    from service.settings import Settings
    from syntax.errors import SpecError

    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in error.errors()]
        raise SpecError(f"the settings are wrong: {'; '.join(faults)}") from None
