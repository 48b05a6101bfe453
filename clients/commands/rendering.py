"""A parse for people's eyes, and for other programs."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from clients.results import ItemError, ParsedItem, ParseResult, Wordpieces
from syntax.conllu import format_conllu
from syntax.sentence import Sentence, Word

_WIDEST_MATRIX = 24
"""Pieces whose distances still fit on a line of most terminals."""


def show_trees(result: ParseResult) -> None:
    """Each sentence as an indented tree, then the pieces and matrices, if any."""
    _show(result, sentence_tree)


def show_tables(result: ParseResult) -> None:
    """Each sentence as a table of words, then the pieces and matrices, if any."""
    _show(result, sentence_table)


def show_conllu(result: ParseResult) -> None:
    """CoNLL-U of all items that could be parsed."""
    for number, item in enumerate(result, 1):
        if isinstance(item, ParsedItem):
            typer.echo(f"# newdoc id = {number}")
            typer.echo(format_conllu(item.parse.document(str(number))), nl=False)


def show_json(result: ParseResult) -> None:
    """The service's answer."""
    typer.echo(json.dumps(result.json, ensure_ascii=False, indent=2))


def show_line(item: ParsedItem | ItemError) -> None:
    """One text of the service's answer, with its place in the request, on one line."""
    typer.echo(json.dumps(item.json, ensure_ascii=False))


RENDERERS: Final[Mapping[str, Callable[[ParseResult], None]]] = {
    "tree": show_trees,
    "table": show_tables,
    "conllu": show_conllu,
    "json": show_json,
}


def sentence_tree(sentence: Sentence) -> Tree:
    """The words of a sentence, each under its head, in the order of the text."""
    children: dict[int, list[Word]] = {}
    for word in sentence.words:
        children.setdefault(word.head or 0, []).append(word)
    top = Tree(Text(sentence.text, style="bold"))
    open_nodes = deque((top, word) for word in children.get(0, []))
    while open_nodes:
        parent, word = open_nodes.popleft()
        node = parent.add(_label(word))
        open_nodes += [(node, child) for child in children.get(word.id, [])]
    return top


def _label(word: Word) -> Text:
    relation = (word.deprel or "_", "green")
    return Text.assemble(word.form, "  ", relation, "  ", (word.upos or "_", "cyan"))


def sentence_table(sentence: Sentence) -> Table:
    """One line per word, the columns of CoNLL-U that parsers fill."""
    table = _table("id", "form", "lemma", "upos", "feats", "head", "deprel", title=sentence.text)
    for word in sentence.words:
        values = (word.form, word.lemma, word.upos, word.feats, word.head, word.deprel)
        table.add_row(str(word.id), *(Text("_" if v is None else str(v)) for v in values))
    return table


def piece_table(text: str, pieces: Wordpieces, depth: Any = None) -> Table:
    """One line per wordpiece: its characters, id, word, parent, and depth where it is known."""
    table = _table(
        "piece", "text", "id", "word", "parent", *(["depth"] if depth is not None else [])
    )
    for at in range(len(pieces)):
        start, end = pieces.offsets[at]
        numbers = (pieces.input_ids[at], pieces.word_ids[at], pieces.parents[at])
        row = [*numbers, depth[at]] if depth is not None else [*numbers]
        table.add_row(str(at), Text(text[start:end]), *map(str, row))
    return table


def matrix_table(name: str, matrix: Any) -> RenderableType:
    """A square matrix, row by row; too wide a one is only named."""
    size = len(matrix)
    if size > _WIDEST_MATRIX:
        return Text(f"{name}: {size} x {size}, too wide to show; use --format json")
    table = _table(name, *map(str, range(size)))
    for at, row in enumerate(matrix):
        table.add_row(str(at), *(_cell(value) for value in row.tolist()))
    return table


def _cell(value: bool | int) -> str:
    if isinstance(value, bool):
        return "x" if value else "."
    return str(value)


def _table(*columns: str, title: str | None = None) -> Table:
    return Table(
        *columns,
        title=None if title is None else Text(title),
        title_justify="left",
        box=None,
        header_style="dim",
        pad_edge=False,
    )


def _show(result: ParseResult, render: Callable[[Sentence], RenderableType]) -> None:
    console = Console(markup=False, emoji=False)
    for item in result:
        if isinstance(item, ParsedItem):
            for renderable in _parts(item, render):
                console.print(renderable)


def _parts(
    item: ParsedItem, render: Callable[[Sentence], RenderableType]
) -> Iterator[RenderableType]:
    yield from map(render, item.sentences)
    if item.wordpieces is not None:
        yield piece_table(item.text, item.wordpieces, item.matrices.get("depth"))
    for name in ("distance", "ancestor"):
        if name in item.matrices:
            yield matrix_table(name, item.matrices[name])
