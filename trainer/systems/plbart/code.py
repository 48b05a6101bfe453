"""Python code as one line of tokens, as PLBART reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from io import StringIO
from tokenize import COMMENT, DEDENT, INDENT, NEWLINE, NL, generate_tokens
from typing import Final

_MARKS: Final = {NEWLINE: "NEW_LINE", INDENT: "INDENT", DEDENT: "DEDENT"}


def python_line(code: str) -> str:
    r"""The tokens of code with a space between, comments left out.

    Ends of lines and changes of indentation are the tokens ``NEW_LINE``, ``INDENT`` and ``DEDENT``
    (Lachaux et al. 2020, https://arxiv.org/abs/2006.03511, section 4.1). White space within strings
    is single spaces.

    >>> python_line("if x:  # why\n    y = 'a b'\n")
    "if x : NEW_LINE INDENT y = 'a b' NEW_LINE DEDENT"
    """
    found = (token for token in generate_tokens(StringIO(code).readline))
    words = (
        _MARKS.get(token.type) or " ".join(token.string.split())
        for token in found
        if token.type not in (COMMENT, NL)
    )
    return " ".join(word for word in words if word)


def functions_of(code: str) -> Iterator[tuple[str, str | None]]:
    """Line and docstring of each outermost function of a module; the line is without it."""
    for node in _outermost(ast.parse(code)):
        text = ast.get_docstring(node)
        if text is not None:
            node.body = node.body[1:] or [ast.Pass()]
        yield python_line(ast.unparse(node)), text


def _outermost(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            yield from _outermost(node)
