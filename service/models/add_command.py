"""``parsebank models add``.

A run becomes an exported parser by ``parsebank export-parser``, a command of the trainer. It is
looked up on the command line, as a user would call it, because the service imports nothing of the
trainer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer

from service.models.shared_commands import ModelsDir, models_folder

EXPORT: Final = "export-parser"
_CARD: Final = "parser.json"


def add_command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What to call it: it is served as parsebank/NAME.")],
    run: Annotated[
        Path,
        typer.Option(
            "--from",
            help="Output of a run of dependency.v1, or a folder of `parsebank export-parser`.",
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
    """Serve a parser that was trained here."""
    from service.models.add import add, check_name
    from service.models.download import Downloader, open_client
    from service.settings import read_settings

    settings = read_settings(models_dir=models_dir)
    folder = models_folder(settings)
    check_name(name, folder)  # before the export, which takes its time
    with _exported(ctx, run) as exported, open_client(1.0) as client:
        record = add(
            name,
            exported,
            settings,
            folder,
            Downloader(client),
            lang=lang,
            words_from=words_from,
            tokenizer=tokenizer,
            licence=licence,
            source=run,
        )
    typer.echo(f"added {record.name} ({(record.size or 0) / 1e6:.1f} MB), SHA-256 {record.sha256}")


@contextmanager
def _exported(ctx: typer.Context, run: Path) -> Iterator[Path]:
    """The folder itself if it is an exported parser, else one to which the run is exported."""
    if (run / _CARD).is_file():
        yield run
        return
    with TemporaryDirectory(prefix="parsebank-") as made:
        _export_command(ctx).main(
            [str(run), made], prog_name=f"parsebank {EXPORT}", standalone_mode=False
        )
        yield Path(made)


def _export_command(ctx: typer.Context) -> Any:
    from syntax.extras import missing_extra

    commands: Any = getattr(ctx.find_root().command, "commands", {})
    if EXPORT not in commands:
        raise missing_extra("a run is exported with torch", "train")
    return commands[EXPORT]
