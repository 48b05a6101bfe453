"""``parsebank serve``, and the commands that this package's parts add."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.models.commands import ModelsDir, register_models
from service.security.commands import keys


def register(app: typer.Typer) -> None:
    app.command()(serve)
    register_models(app)
    app.add_typer(keys, name="keys")


def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind. Default: loopback.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind; 0 picks a free one.")] = None,
    store: Annotated[
        str | None, typer.Option(help="Store: a folder or s3://bucket/prefix.")
    ] = None,
    models_dir: ModelsDir = None,
    tokenizers_dir: Annotated[
        Path | None, typer.Option(help="Folder of tokenizers that requests may name.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Parser processes per model.")] = None,
    jobs_url: Annotated[
        str | None, typer.Option(help="Database of the jobs, as postgresql://...")
    ] = None,
    keys_file: Annotated[
        Path | None, typer.Option(help="File of API keys, written by `parsebank keys add`.")
    ] = None,
    rate_limit: Annotated[
        str | None,
        typer.Option(help="Most requests per key (without keys: per address), as 600/minute."),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="Lowest level to log: debug, info, warning or error.")
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(help="Format of the log: console or json.")
    ] = None,
    allow_remote: Annotated[
        bool | None, typer.Option("--allow-remote", help="Allow a public address without keys.")
    ] = None,
) -> None:
    """Run the service. Each setting is also a variable PARSEBANK_<SETTING>."""
    given = dict(locals())
    from service.checks import check_server
    from service.settings import read_settings

    settings = read_settings(**given)
    check_server(settings)
    from service.server import run_server

    run_server(settings)
