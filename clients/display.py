"""Pictures of parses in the terminal: trees, tables and matrices; and output for programs."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import typer
from rich.text import Text
from rich.tree import Tree

from clients.client.results import ItemError, ParsedItem, ParseResult, Wordpieces
from syntax.commands.tables import print_table
from syntax.trees.conllu import format_conllu
from syntax.trees.sentence import Sentence, Word

_WIDEST_MATRIX = 24
"""Most wordpieces whose distances fit on a line of most terminals."""


def show_trees(result: ParseResult) -> None:
    from rich.console import Console

    console = Console(markup=False, emoji=False)
    _show(result, lambda sentence: console.print(sentence_tree(sentence), soft_wrap=True))


def show_tables(result: ParseResult) -> None:
    _show(result, show_sentence)


def show_conllu(result: ParseResult) -> None:
    for number, item in enumerate(result, 1):
        if isinstance(item, ParsedItem):
            typer.echo(f"# newdoc id = {number}")
            typer.echo(format_conllu(item.parse.document(str(number))), nl=False)


def show_json(result: ParseResult) -> None:
    typer.echo(json.dumps(result.json, ensure_ascii=False, indent=2))


def show_line(item: ParsedItem | ItemError) -> None:
    typer.echo(json.dumps(item.json, ensure_ascii=False))


RENDERERS: Final[Mapping[str, Callable[[ParseResult], None]]] = {
    "tree": show_trees,
    "table": show_tables,
    "conllu": show_conllu,
    "json": show_json,
}


def sentence_tree(sentence: Sentence) -> Tree:
    children: dict[int, list[Word]] = {}
    for word in sentence.words:
        children.setdefault(word.head or 0, []).append(word)
    top = Tree(Text(sentence.text, style="bold"))
    open_nodes = deque((top, word) for word in children.get(0, []))
    while open_nodes:
        parent, word = open_nodes.popleft()
        relation = (word.deprel or "_", "green")
        node = parent.add(
            Text.assemble(word.form, "  ", relation, "  ", (word.upos or "_", "cyan"))
        )
        open_nodes += [(node, child) for child in children.get(word.id, [])]
    return top


def show_sentence(sentence: Sentence) -> None:
    names = ("id", "form", "lemma", "upos", "feats", "head", "deprel")
    rows = [
        ["_" if value is None else value for value in (getattr(word, name) for name in names)]
        for word in sentence.words
    ]
    print_table(names, rows, title=sentence.text)


def show_pieces(text: str, pieces: Wordpieces, depth: Any = None) -> None:
    rows = []
    for at in range(len(pieces)):
        start, end = pieces.offsets[at]
        numbers = (pieces.input_ids[at], pieces.word_ids[at], pieces.parents[at])
        further = () if depth is None else (depth[at],)
        rows.append((at, text[start:end], *map(int, (*numbers, *further))))
    further_names = () if depth is None else ("depth",)
    print_table(("piece", "text", "id", "word", "parent", *further_names), rows)


def show_matrix(name: str, matrix: Any) -> None:
    size = len(matrix)
    if size > _WIDEST_MATRIX:
        typer.echo(f"{name}: {size} x {size}, too wide to show; use --format json")
        return
    rows = [(at, *map(_cell, row.tolist())) for at, row in enumerate(matrix)]
    print_table((name, *map(str, range(size))), rows)


def _cell(value: bool | int) -> str | int:
    if isinstance(value, bool):
        return "x" if value else "."
    return value


def _show(result: ParseResult, show: Callable[[Sentence], None]) -> None:
    for item in (item for item in result if isinstance(item, ParsedItem)):
        for sentence in item.sentences:
            show(sentence)
        if item.wordpieces is not None:
            typer.echo()
            show_pieces(item.text, item.wordpieces, item.matrices.get("depth"))
        for name in ("distance", "ancestor"):
            if name in item.matrices:
                typer.echo()
                show_matrix(name, item.matrices[name])
