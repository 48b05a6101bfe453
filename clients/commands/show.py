"""``parsebank show``: pictures of a text, a stored parse or a CoNLL-U file."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from clients.commands.connect import StoreOption, UrlOption, connect, one_parser

if TYPE_CHECKING:
    from clients.client.results import ParsedItem
    from syntax.drawing.svg import Picture
    from syntax.trees.sentence import Sentence


_TITLE: Final = 80


class Format(StrEnum):
    """Output formats."""

    terminal = "terminal"
    svg = "svg"
    html = "html"


class Layout(StrEnum):
    """Drawings of a tree."""

    arcs = "arcs"
    hierarchy = "hierarchy"


def show(
    text: Annotated[
        str | None, typer.Argument(help="A text to parse; `-` reads standard input.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Key of a stored parse, instead of TEXT.")] = None,
    conllu: Annotated[
        Path | None, typer.Option(help="A CoNLL-U file, instead of TEXT; nothing is parsed.")
    ] = None,
    sent_id: Annotated[
        list[str] | None,
        typer.Option(help="With --conllu: show only the sentence with this id. Repeatable."),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(help="Language code. Default: the parser's language, or the service's."),
    ] = None,
    parser: Annotated[
        str | None, typer.Option(help="Name of a parser. Default: the language's.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="In SVG and HTML, draw this tokenizer's wordpieces under the words."),
    ] = None,
    matrices: Annotated[
        list[str] | None,
        typer.Option(help="In SVG and HTML, draw heat maps, any of distance,depth,ancestor."),
    ] = None,
    asked_form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="`terminal` is a tree of characters, `svg` one picture, `html` a page that loads "
            "nothing from elsewhere. Default: svg or html if --output ends so, else terminal.",
        ),
    ] = None,
    layout: Annotated[
        Layout,
        typer.Option(help="In SVG and HTML: `arcs` over the words, or a `hierarchy` of heads."),
    ] = Layout.arcs,
    output: Annotated[
        Path | None, typer.Option(help="Write to this file instead of the terminal.")
    ] = None,
    url: UrlOption = None,
    store: StoreOption = None,
) -> None:
    """Draw the trees of a text, of a stored parse or of a CoNLL-U file."""
    if sum(source is not None for source in (text, key, conllu)) != 1:
        raise typer.BadParameter("give one of TEXT, --key and --conllu")
    if sent_id and conllu is None:
        raise typer.BadParameter("--sent-id selects sentences of --conllu")
    form = asked_form or _form_of(output)
    asked = {"lang": lang, "parser": parser, "tokenizer": tokenizer, "matrices": matrices}
    options: dict[str, Any] = {name: value for name, value in asked.items() if value}
    if options and text is None:
        raise typer.BadParameter(f"--{next(iter(options))} is for a TEXT, which is parsed")
    if form is Format.terminal and (tokenizer or matrices):
        raise typer.BadParameter("--tokenizer and --matrices need --format svg or html")
    if matrices:
        from clients.commands.inputs import matrix_names

        options["matrices"] = matrix_names(matrices)
    if conllu is not None:
        content = _drawn_file(conllu, sent_id or [], form, layout)
    else:
        content = _drawn_item(_item(text, key, options, url, store), form, layout)
    if output is None:
        typer.echo(content, nl=False)
    else:
        output.write_text(content, encoding="utf-8")


def _form_of(output: Path | None) -> Format:
    suffix = output.suffix.lower() if output else ""
    if suffix in (".png", ".pdf", ".jpg", ".jpeg"):
        raise typer.BadParameter(
            f"{output}: pictures are written as .svg or .html; the page of the service "
            "(`parsebank serve`) saves PNG"
        )
    return {".svg": Format.svg, ".html": Format.html}.get(suffix, Format.terminal)


def _item(
    text: str | None, key: str | None, options: dict[str, Any], url: str | None, store: str | None
) -> ParsedItem:
    from clients.commands.inputs import read_texts

    lang, parser, tokenizer = (options.get(name) for name in ("lang", "parser", "tokenizer"))
    names = {} if text is None else one_parser(lang, parser, tokenizers=tokenizer)
    # No backfill runs here, and one text needs one worker.
    with connect(url, store, names, ahead="parser", job_workers=0, workers=1) as client:
        if key is not None:
            result = client.stored_parse(key)
        else:
            result = client.parse(texts=read_texts(text or "-", lines=False), **options)
    return result.parsed()[0]


def _drawn_item(item: ParsedItem, form: Format, layout: Layout) -> str:
    from clients.client.pictures import draw_item

    if form is Format.terminal:
        return _trees(item.sentences)
    return _document(form, _shortened(item.text), draw_item(item, layout.value))


def _drawn_file(path: Path, sent_ids: Sequence[str], form: Format, layout: Layout) -> str:
    from syntax.drawing.trees import draw_sentence

    sentences = _selected(path, sent_ids)
    if form is Format.terminal:
        return _trees(sentences)
    return _document(form, path.name, [draw_sentence(one, layout.value) for one in sentences])


def _selected(path: Path, sent_ids: Sequence[str]) -> list[Sentence]:
    from syntax.registry import unknown_name
    from syntax.trees.conllu import read_conllu

    sentences = list(read_conllu(path))
    if not sent_ids:
        return sentences
    known = {sentence.sent_id for sentence in sentences}
    for wanted in sent_ids:
        if wanted not in known:
            raise unknown_name(f"sent_id in {path.name}", wanted, filter(None, known))
    return [sentence for sentence in sentences if sentence.sent_id in sent_ids]


def _trees(sentences: Sequence[Sentence]) -> str:
    from syntax.drawing.characters import tree_text

    return "\n\n".join(map(tree_text, sentences)) + "\n"


def _document(form: Format, title: str, pictures: Sequence[Picture]) -> str:
    from syntax.drawing.page import page
    from syntax.drawing.svg import stacked

    return page(title, pictures) if form is Format.html else f"{stacked(title, pictures).svg()}\n"


def _shortened(text: str) -> str:
    return text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"
