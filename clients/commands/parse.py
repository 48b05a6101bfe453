"""``parsebank parse``: look at a parse."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clients.commands.connect import StoreOption, UrlOption, connect

if TYPE_CHECKING:
    from clients.results import ParseResult


class Format(StrEnum):
    """How a parse is shown."""

    tree = "tree"
    table = "table"
    conllu = "conllu"
    json = "json"


def parse(
    text: Annotated[str, typer.Argument(help="The text; - reads it from standard input.")] = "-",
    lang: Annotated[str, typer.Option(help="Language code.")] = "en",
    parser: Annotated[str | None, typer.Option(help="Parser; else the language's own.")] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="raw, sentence, or pretokenized (words divided by spaces)."),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Name or path of a tokenizer whose pieces to align.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="How the pieces of a word hang.")] = None,
    matrices: Annotated[
        str, typer.Option(help="Any of distance,depth,ancestor, divided by commas.")
    ] = "",
    lines: Annotated[bool, typer.Option("--lines", help="Each line is a text of its own.")] = False,
    form: Annotated[Format, typer.Option("--format", help="What to show.")] = Format.tree,
    url: UrlOption = None,
    store: StoreOption = None,
) -> None:
    """Parse a text and show its trees.

    Exits with 1 when a text could not be parsed; the others are shown all the same.
    """
    texts = _texts(text, lines=lines)
    options: dict[str, Any] = {"lang": lang, "parser": parser, "mode": mode}
    options |= {"tokenizer": tokenizer, "policy": policy, "matrices": _names(matrices)}
    given = {name: value for name, value in options.items() if value}
    if mode in ("pretokenized", "retokenize"):
        given["tokens"] = [line.split() for line in texts]
    else:
        given["texts"] = texts
    # No backfill runs here, and one text needs one worker.
    with connect(url, store, job_workers=0, workers=1) as client:
        _show(client.parse(**given), form)


def _texts(text: str, *, lines: bool) -> list[str]:
    given = _standard_input() if text == "-" else text
    whole = given.removesuffix("\n")
    return whole.split("\n") if lines else [whole]


def _standard_input() -> str:
    from syntax.errors import InvalidCharacterError

    try:
        return typer.get_binary_stream("stdin").read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidCharacterError(
            f"byte {error.start} of standard input is not UTF-8; convert it first"
        ) from None


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _show(result: ParseResult, form: Format) -> None:
    from clients.commands.rendering import RENDERERS
    from clients.results import ItemError

    RENDERERS[form](result)
    failures = [item for item in result if isinstance(item, ItemError)]
    for failure in failures:
        typer.echo(f"Error: {failure.error_type}: {failure.message}", err=True)
    if failures:
        raise typer.Exit(1)
