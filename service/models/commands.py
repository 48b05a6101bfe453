"""``parsebank models``: list, pull, train, add, verify, remove."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from service.models.add_command import add_command
from service.models.shared_commands import ModelsDir, models_folder
from service.models.train_command import train_udpipe
from syntax.commands.tables import AsJson, Size, print_json, print_rows

if TYPE_CHECKING:
    from service.models.catalogue import Offer
    from service.models.download import Downloader
    from service.models.pull import Pulled
    from service.models.upkeep import Verdict
    from service.settings import Settings

Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="URL or folder to fetch from, such as a copied models folder (PARSEBANK_MODELS_URL). "
        "Default: the official archives.",
    ),
]
Offline = Annotated[
    bool | None, typer.Option("--offline", help="Do not use the network (PARSEBANK_OFFLINE).")
]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for an answer.", min=0.001)]


def register_models(app: typer.Typer) -> None:
    """Add ``models`` and its sub-commands."""
    models = typer.Typer(
        help="List, pull, train, verify and remove parser models.", no_args_is_help=True
    )
    models.command("list")(list_command)
    models.command("pull")(pull_command)
    models.command("add")(add_command)
    models.command("verify")(verify_command)
    models.command("remove")(remove_command)
    training = typer.Typer(help="Train a model from a treebank.", no_args_is_help=True)
    training.command("udpipe")(train_udpipe)
    # A single sub-command would otherwise be merged into its parent.
    training.callback()(_backends)
    models.add_typer(training, name="train")
    app.add_typer(models, name="models")


def list_command(
    models_dir: ModelsDir = None,
    lang: Annotated[
        list[str] | None, typer.Option(help="Only models of these languages, as en,fr.")
    ] = None,
    remote: Annotated[
        bool, typer.Option("--remote", help="List the models that can be pulled.")
    ] = False,
    source: Source = None,
    offline: Offline = None,
    timeout: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """List the available models, or those that can be pulled."""
    from service.settings import read_settings
    from syntax.lists import listed

    settings = read_settings(models_dir=models_dir, models_url=source, offline=offline)
    langs = listed(lang)
    found = _list_remote(settings, langs, timeout) if remote else _list_here(settings, langs)
    print_rows(found, as_json)


def pull_command(
    names: Annotated[
        list[str], typer.Argument(help="Full names, beginnings of names, or language codes.")
    ],
    models_dir: ModelsDir = None,
    source: Source = None,
    sha256: Annotated[
        str | None, typer.Option(help="Checksum that a single file must have.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Load each model once before recording it.")
    ] = True,
    offline: Offline = None,
    timeout: Timeout = 30.0,
) -> None:
    """Fetch models into the models folder; an interrupted download continues."""
    from service.models.catalogue import choose, offers_for
    from service.models.pull import pull
    from service.settings import read_settings
    from syntax.lists import listed

    settings = read_settings(models_dir=models_dir, models_url=source, offline=offline)
    folder = models_folder(settings)
    _refuse_offline(settings)
    with _downloader(timeout) as downloader:
        chosen = [
            choose(offers_for(name, settings.models_url, downloader), name)
            for name in listed(names)
        ]
        for offer in _with_checksum(chosen, sha256):
            _print_pulled(pull(offer, folder, downloader, check=check))


def verify_command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of models. Default: all.")
    ] = None,
    models_dir: ModelsDir = None,
    as_json: AsJson = False,
) -> None:
    """Check every model's checksum against the recorded one, and load it."""
    from service.models.upkeep import verify
    from service.settings import read_settings
    from syntax.lists import listed

    verdicts = verify(read_settings(models_dir=models_dir), list(listed(names)))
    if as_json:
        print_json([asdict(verdict) for verdict in verdicts])
    else:
        for verdict in verdicts:
            _print_verdict(verdict)
    if any(verdict.problem for verdict in verdicts):
        raise typer.Exit(1)


def remove_command(
    names: Annotated[list[str], typer.Argument(help="Full names of models.")],
    models_dir: ModelsDir = None,
) -> None:
    """Delete models from the models folder."""
    from service.models.upkeep import remove
    from service.settings import read_settings
    from syntax.lists import listed

    folder = models_folder(read_settings(models_dir=models_dir))
    for name in listed(names):
        for path in remove(folder, name):
            typer.echo(f"removed {path}")


def _backends() -> None:
    """Train a model from a treebank."""


def _list_here(settings: Settings, langs: tuple[str, ...]) -> list[dict[str, object]]:
    from service.parsers import list_models
    from service.parsers.registry import serves

    return [
        {
            "name": model.name,
            "languages": tuple(model.langs),
            "treebank": model.card.get("treebank"),
            "version": model.card.get("version") or model.card.get("treebank_version"),
            "licence": model.card.get("licence"),
            "size": Size(model.size),
        }
        for model in list_models(settings)
        if not langs or any(serves(model, lang) for lang in langs)
    ]


def _list_remote(
    settings: Settings, langs: tuple[str, ...], timeout: float
) -> list[dict[str, object]]:
    from service.parsers import list_models
    from service.parsers.languages import language_code

    here = {model.name for model in list_models(settings)}
    wanted = {language_code(lang) for lang in langs}
    return [
        {
            "name": record.name,
            "language": record.language,
            "treebank": record.treebank,
            "version": record.version,
            "licence": record.licence,
            "size": Size(record.size) if record.size else None,
            "here": record.name in here,
        }
        for record in (offer.record for offer in _remote_offers(settings, timeout))
        if not wanted or language_code(record.language or "") in wanted
    ]


def _remote_offers(settings: Settings, timeout: float) -> list[Offer]:
    from service.models.catalogue import mirror_offers, stanza_offers, udpipe_offers
    from syntax.errors import DownloadError, MissingExtraError

    with _downloader(timeout) as downloader:
        if settings.models_url is not None:
            _refuse_offline(settings)
            return mirror_offers(settings.models_url, downloader)
        offers = udpipe_offers()
        try:
            _refuse_offline(settings)
            return [*offers, *stanza_offers(downloader)]
        except (DownloadError, MissingExtraError) as error:
            typer.echo(f"without Stanza's models: {error.message}", err=True)
            return offers


def _refuse_offline(settings: Settings) -> None:
    from service.models.download import is_url
    from syntax.errors import DownloadError

    hub_offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    if (settings.offline or hub_offline) and is_url(settings.models_url or "https://"):
        raise DownloadError(
            "no model is fetched from the network, because --offline, PARSEBANK_OFFLINE or "
            "HF_HUB_OFFLINE is set; fetch from a folder (--from), or allow the network"
        )


def _with_checksum(offers: list[Offer], sha256: str | None) -> list[Offer]:
    from syntax.errors import SpecError

    if sha256 is None:
        return offers
    if len(offers) != 1 or len(offers[0].record.files) != 1:
        raise SpecError("--sha256 is the checksum of one file; name one model of a single file")
    offer = offers[0]
    file = replace(offer.record.files[0], sha256=sha256.lower(), md5=None)
    return [replace(offer, record=replace(offer.record, files=(file,)))]


@contextmanager
def _downloader(timeout: float) -> Iterator[Downloader]:
    """A downloader that shows a bar while something comes."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from service.models.download import Downloader, open_client

    console = Console(stderr=True, markup=False, emoji=False)
    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with open_client(timeout) as client, bars:
        task = bars.add_task("", visible=False)

        def report(name: str, done: int, total: int | None) -> None:
            bars.update(task, description=name, completed=done, total=total, visible=True)

        yield Downloader(client, report)


def _print_pulled(pulled: Pulled) -> None:
    record = pulled.record
    if pulled.outcome == "there":
        typer.echo(f"{record.name} is there already, whole")
        return
    typer.echo(f"pulled {record.name} from {record.source} ({(record.size or 0) / 1e6:.1f} MB)")
    typer.echo(f"  licence {record.licence or 'unknown'}, SHA-256 {record.sha256}")
    if not pulled.checked:
        typer.echo("  the source gives no checksum: this one is trusted and recorded (first use)")


def _print_verdict(verdict: Verdict) -> None:
    if verdict.problem:
        typer.echo(f"FAILED  {verdict.name}: {verdict.problem}")
        return
    recorded = "" if verdict.compared else " (no checksum is recorded to compare with)"
    typer.echo(f"ok      {verdict.name} {verdict.fingerprint}{recorded}")
