"""``parsebank models``: list, pull, train, add, verify, remove."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from service.training.command import train_udpipe
from service.training.own_command import call_command, train_own
from syntax.commands.tables import AsJson, Size, print_json, print_rows

if TYPE_CHECKING:
    from service.models.catalogue import Offer
    from service.models.download import Downloader
    from service.settings import Settings

ModelsDir = Annotated[
    Path | None, typer.Option(help="Folder of further models (PARSEBANK_MODELS_DIR).")
]
Langs = Annotated[list[str] | None, typer.Option(help="Only models of these languages, as en,fr.")]
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

_EXPORT: Final = "export-parser"


def register_models(app: typer.Typer) -> None:
    models = typer.Typer(
        help="List, pull, train, verify and remove parser models.", no_args_is_help=True
    )
    models.command("list")(list_command)
    models.command("pull")(pull_command)
    models.command("add")(add_command)
    models.command("verify")(verify_command)
    models.command("remove")(remove_command)
    training = typer.Typer(help="Train a model from a treebank.", no_args_is_help=True)
    training.command("own")(train_own)
    training.command("udpipe")(train_udpipe)
    models.add_typer(training, name="train")
    app.add_typer(models, name="models")


def list_command(
    models_dir: ModelsDir = None,
    lang: Langs = None,
    remote: Annotated[
        bool, typer.Option("--remote", help="List the models that can be pulled.")
    ] = False,
    source: Source = None,
    offline: Offline = None,
    timeout: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """List the available models, or those that can be pulled."""
    from service.parsers import list_models
    from service.parsers.languages import language_code
    from service.settings import read_settings
    from syntax.lists import listed

    settings = read_settings(models_dir=models_dir, models_url=source, offline=offline)
    codes = {language_code(code) for code in listed(lang)}
    here = list_models(settings)
    rows: list[dict[str, object]]
    if remote:
        names = {model.name for model in here}
        rows = [
            {
                "name": record.name,
                "language": record.language,
                "treebank": record.treebank,
                "version": record.version,
                "licence": record.licence,
                "size": Size(record.size) if record.size else None,
                "here": record.name in names,
            }
            for record in (offer.record for offer in _remote_offers(settings, timeout))
            if not codes or language_code(record.language or "") in codes
        ]
    else:
        rows = [
            {
                "name": model.name,
                "languages": tuple(model.langs),
                "treebank": model.card.get("treebank"),
                "version": model.card.get("version") or model.card.get("treebank_version"),
                "licence": model.card.get("licence"),
                "size": Size(model.size),
            }
            for model in here
            if not codes or not codes.isdisjoint(map(language_code, model.langs))
        ]
    print_rows(rows, as_json)


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
    from service.models.pull import is_there, pull
    from service.settings import read_settings
    from syntax.lists import listed

    settings = read_settings(models_dir=models_dir, models_url=source, offline=offline)
    folder = _folder(settings)
    _refuse_offline(settings)
    with _downloader(timeout) as downloader:
        chosen = [
            choose(offers_for(name, settings.models_url, downloader), name)
            for name in listed(names)
        ]
        for offer in _with_checksum(chosen, sha256):
            if is_there(offer, folder):
                typer.echo(f"{offer.record.name} is there already, whole")
                continue
            record = pull(offer, folder, downloader, check=check)
            size = f"{(record.size or 0) / 1e6:.1f} MB"
            typer.echo(f"pulled {record.name} from {record.source} ({size})")
            typer.echo(f"  licence {record.licence or 'unknown'}, SHA-256 {record.sha256}")
            if not all(file.has_checksum for file in offer.record.files):
                typer.echo(
                    "  the source gives no checksum: this one is trusted and recorded (first use)"
                )


def add_command(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            help="What to call it: it is served as parsebank/NAME. Of a UDPipe 2 service, the "
            "model's name there: udpipe2/NAME."
        ),
    ],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="Output of a run of dependency.v1, a folder of `parsebank export-parser`, or the "
            "URL of a UDPipe 2 service's API, to which texts are then sent.",
        ),
    ],
    models_dir: ModelsDir = None,
    lang: Annotated[
        str | None, typer.Option(help="Its language; that of its training data by default.")
    ] = None,
    words_from: Annotated[
        str | None,
        typer.Option(
            help="UDPipe model that finds sentences and words, by default that of the language; "
            "with none, it takes only tokens."
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Folder of its tokenizer, where its name no longer leads to it."),
    ] = None,
    licence: Annotated[
        str | None, typer.Option(help="Licence of the model, such as that of its treebank.")
    ] = None,
) -> None:
    """Serve a parser that was trained here, or a model of a UDPipe 2 service."""
    from service.models.add import add, add_remote, check_name
    from service.models.download import is_url
    from service.settings import read_settings
    from syntax.errors import SpecError

    settings = read_settings(models_dir=models_dir)
    folder = _folder(settings)
    if is_url(source):
        if words_from or tokenizer:
            raise SpecError("a UDPipe 2 service has its own words: leave out what finds them")
        path = add_remote(name, source, folder, lang=lang, licence=licence)
        typer.echo(f"added {path}: texts for udpipe2/{name} are sent to {source}")
        return
    run = Path(source)
    check_name(name, folder)  # before the export, which takes its time
    with _exported(ctx, run) as exported:
        record = add(
            name,
            exported,
            settings,
            folder,
            lang=lang,
            words_from=words_from,
            tokenizer=tokenizer,
            licence=licence,
            source=run,
        )
    typer.echo(f"added {record.name} ({(record.size or 0) / 1e6:.1f} MB), SHA-256 {record.sha256}")


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
            recorded = "" if verdict.compared else " (no checksum is recorded to compare with)"
            typer.echo(
                f"FAILED  {verdict.name}: {verdict.problem}"
                if verdict.problem
                else f"ok      {verdict.name} {verdict.fingerprint}{recorded}"
            )
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

    folder = _folder(read_settings(models_dir=models_dir))
    for name in listed(names):
        for path in remove(folder, name):
            typer.echo(f"removed {path}")


def _folder(settings: Settings) -> Path:
    from syntax.errors import SpecError

    if settings.models_dir is None:
        raise SpecError(
            "there is no models folder; name one with --models-dir, or set PARSEBANK_MODELS_DIR "
            "so that the service finds it too"
        )
    return settings.models_dir


@contextmanager
def _exported(ctx: typer.Context, run: Path) -> Iterator[Path]:
    """Export a run by the trainer's command: the service imports nothing of the trainer."""
    from service.parsers.words.folder import CARD

    if (run / CARD).is_file():
        yield run
        return
    with TemporaryDirectory(prefix="parsebank-") as made:
        call_command(
            ctx, _EXPORT, str(run), made, problem="a run is exported with torch", extra="train"
        )
        yield Path(made)


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
