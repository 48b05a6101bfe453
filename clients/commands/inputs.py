"""Inputs of ``parsebank parse``: texts, or tokens with or without labels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import typer

from clients.client.calls import MatrixName
from clients.files import open_file
from syntax.errors import InvalidCharacterError, SpecError
from syntax.lists import listed
from syntax.registry import unknown_name


def read_texts(text: str, *, lines: bool) -> list[str]:
    """Text of the command line or standard input (``-``), whole or line by line.

    The name of a file is parsed as it stands, with a note on how to parse the file.
    """
    if text != "-" and _is_file(text):
        typer.echo(f"Note: {text!r} is parsed as a text; for the file, use - < {text}", err=True)
    given = (
        _decoded(typer.get_binary_stream("stdin").read(), "standard input") if text == "-" else text
    )
    whole = given.removesuffix("\n").removesuffix("\r")
    return whole.replace("\r\n", "\n").split("\n") if lines else [whole]


def read_tokens(path: Path) -> dict[str, Any]:
    """Sentences of a file with a token a line and a blank line after each sentence.

    A token may hold spaces. Behind a tab it may have a label; then every token must have one.
    """
    with open_file(path) as file:
        content = file.read()
    blocks = _decoded(content, path.name).replace("\r\n", "\n").split("\n\n")
    sentences = [[*map(_token, block.strip("\n").split("\n"))] for block in blocks if block.strip()]
    if not sentences:
        raise SpecError(f"{path} holds no tokens; write one a line")
    labelled = {label is not None for sentence in sentences for _, label in sentence}
    if len(labelled) > 1:
        raise SpecError(f"{path}: some lines have a label behind a tab, others none; give all one")
    given = {"tokens": [[token for token, _ in sentence] for sentence in sentences]}
    if True in labelled:
        given["token_labels"] = [[str(label) for _, label in sentence] for sentence in sentences]
    return given


def matrix_names(given: Iterable[str] | None) -> list[str]:
    names = listed(given)
    for name in names:
        if name not in get_args(MatrixName):
            raise unknown_name("matrix", name, get_args(MatrixName))
    return list(names)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or a NUL
        return False


def _token(line: str) -> tuple[str, str | None]:
    token, tab, label = line.partition("\t")
    return token, label if tab else None


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InvalidCharacterError(
            f"byte {error.start} of {name} is not UTF-8; convert it first"
        ) from None
