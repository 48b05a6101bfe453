"""``parsebank fill``: empty columns of CoNLL-U, filled by a parser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from clients.commands.connect import StoreOption, UrlOption, connect, one_parser
from clients.spelling import spelled


def fill(
    path: Annotated[Path, typer.Argument(help="A CoNLL-U file; `-` reads standard input.")],
    lang: Annotated[
        str | None,
        typer.Option(help="Language code. Default: the parser's language, or the service's."),
    ] = None,
    parser: Annotated[
        str | None, typer.Option(help="Name of a parser. Default: the language's.")
    ] = None,
    url: UrlOption = None,
    store: StoreOption = None,
) -> None:
    """Fill the empty columns of CoNLL-U with a parser; what is given stays.

    Exits with 1 if a sentence could not be filled; it is written as it came.
    """
    from clients.fill import filled
    from syntax.errors import ParsebankError
    from syntax.trees.conllu import format_conllu

    sentences = _read(path)
    options: dict[str, Any] = {"lang": lang, "parser": parser}
    given = {name: value for name, value in options.items() if value}
    failed = False
    names = one_parser(lang, parser)
    with connect(url, store, names, ahead="parser", job_workers=0, workers=1) as client:
        found = filled(client, sentences, **given)
        for number, (sentence, one) in enumerate(zip(sentences, found, strict=True), 1):
            if isinstance(one, ParsebankError):
                failed = True
                typer.echo(
                    f"Error: sentence {number}: {one.error_type}: {spelled(one.message)}", err=True
                )
                one = sentence
            typer.echo(format_conllu([one]), nl=False)
    if failed:
        raise typer.Exit(1)


def _read(path: Path) -> list[Any]:
    from clients.commands.inputs import read_texts
    from syntax.trees.conllu import parse_conllu, read_conllu

    if str(path) == "-":
        return list(parse_conllu(read_texts("-", lines=False)[0]))
    return list(read_conllu(path))
