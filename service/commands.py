"""``parsebank serve``, and the commands that this package's parts add."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.models.commands import ModelsDir, register_models
from service.security.commands import keys


def register(app: typer.Typer) -> None:
    """Add this package's commands."""
    app.command()(serve)
    register_models(app)
    app.add_typer(keys, name="keys")


def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind; loopback by default.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind; 0 takes a free one.")] = None,
    store: Annotated[str | None, typer.Option(help="Folder or s3://bucket/prefix.")] = None,
    models_dir: ModelsDir = None,
    tokenizers_dir: Annotated[
        Path | None, typer.Option(help="Folder below which requests may name tokenizers.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Parser processes per model.")] = None,
    jobs_url: Annotated[
        str | None, typer.Option(help="Database of the jobs, as postgresql://...")
    ] = None,
    keys_file: Annotated[
        Path | None, typer.Option(help="File of API keys, made by `parsebank keys add`.")
    ] = None,
    rate_limit: Annotated[
        str | None, typer.Option(help="Of each key, or each address, as 600/minute.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning, error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="console or json.")] = None,
    allow_remote: Annotated[
        bool | None, typer.Option("--allow-remote", help="Allow a public address without keys.")
    ] = None,
) -> None:
    """Run the service. Every setting is also read from PARSEBANK_<SETTING>."""
    given = dict(locals())
    from service.server import run_server
    from service.settings import read_settings

    run_server(read_settings(**given))
