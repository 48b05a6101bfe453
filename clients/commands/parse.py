"""``parsebank parse``: shows a parse."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clients.commands.connect import StoreOption, UrlOption, connect, one_parser
from clients.spelling import spelled
from syntax.examples import TOKEN_MODES, ParseMode

if TYPE_CHECKING:
    from clients.client.client import Client
    from clients.client.results import ItemError, ParsedItem, ParseResult


class Format(StrEnum):
    """Output formats."""

    tree = "tree"
    table = "table"
    conllu = "conllu"
    json = "json"
    ndjson = "ndjson"


def parse(
    text: Annotated[str, typer.Argument(help="The text; `-` reads standard input.")] = "-",
    lang: Annotated[
        str | None,
        typer.Option(help="Language code. Default: the parser's language, or the service's."),
    ] = None,
    parser: Annotated[
        str | None, typer.Option(help="Name of a parser. Default: the language's.")
    ] = None,
    mode: Annotated[
        ParseMode | None,
        typer.Option(
            help="`raw` or `sentence`. For tokens: `pretokenized` (the tokens are the words), "
            "`tokens_mwt` (the parser splits multiword tokens) or `retokenize` (the parser finds "
            "its own words and aligns them with the tokens)."
        ),
    ] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Split the text at white space into tokens.")
    ] = False,
    tokens_file: Annotated[
        Path | None,
        typer.Option(
            help="Read tokens instead of a text: one token per line, optionally a tab and a "
            "label; an empty line after each sentence."
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Name or path of a tokenizer; adds wordpieces aligned with words."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="How later pieces of a word attach to the tree: attach, broadcast, chain, "
            "copy_head or none."
        ),
    ] = None,
    matrices: Annotated[
        list[str] | None, typer.Option(help="Matrices to derive, any of distance,depth,ancestor.")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Read each line as a separate text.")
    ] = False,
    long_sentences: Annotated[
        bool, typer.Option("--split-long", help="Split sentences that exceed the service's limit.")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.tree,
    url: UrlOption = None,
    store: StoreOption = None,
) -> None:
    """Parse a text and show its trees.

    Exits with 1 if a text could not be parsed; the other texts are shown.
    """
    from clients.commands.inputs import matrix_names, read_texts, read_tokens

    options: dict[str, Any] = {"lang": lang, "parser": parser, "mode": mode}
    options |= {"tokenizer": tokenizer, "policy": policy, "matrices": matrix_names(matrices)}
    options["long_sentences"] = "split" if long_sentences else None
    if tokens_file is not None:
        if text != "-" or tokens or lines:
            raise typer.BadParameter("it comes instead of TEXT, --tokens and --lines")
        options |= read_tokens(tokens_file)
    elif tokens or mode in TOKEN_MODES:
        options["tokens"] = [line.split() for line in read_texts(text, lines=lines)]
    else:
        options["texts"] = read_texts(text, lines=lines)
    given = {name: value for name, value in options.items() if value}
    # No backfill runs here, and one text needs one worker.
    names = one_parser(lang, parser, tokenizers=tokenizer, policies=policy)
    with connect(url, store, names, ahead="parser", job_workers=0, workers=1) as client:
        if form is Format.ndjson:
            _stream(client, given)
        else:
            _show(client.parse(**given), form)


def _show(result: ParseResult, form: Format) -> None:
    from clients.display import RENDERERS

    RENDERERS[form](result)
    _exit(list(result))


def _stream(client: Client, given: dict[str, Any]) -> None:
    from clients.display import show_line

    items = []
    for _, item in client.parse_iter(**given):
        show_line(item)
        items.append(item)
    _exit(items)


def _exit(items: Sequence[ParsedItem | ItemError]) -> None:
    from clients.client.results import ItemError

    failures = [item for item in items if isinstance(item, ItemError)]
    for failure in failures:
        typer.echo(f"Error: {failure.error_type}: {spelled(failure.message)}", err=True)
    if failures:
        raise typer.Exit(1)
