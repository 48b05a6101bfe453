"""Read CoNLL-U sentence by sentence, without loss.

The reader checks lines: encoding, columns, ids, ranges, empty lines. `Sentence.tree` checks the
heads, so that a file with one bad tree can be read.

Source: https://universaldependencies.org/format.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Final

from syntax.errors import ConlluError
from syntax.trees.sentence import EmptyNode, Sentence, Token, Word

COLUMNS: Final = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")

_RANGE: Final = re.compile(r"([1-9][0-9]{,8})-([1-9][0-9]{,8})")
_EMPTY_NODE: Final = re.compile(r"(0|[1-9][0-9]{,8})\.([1-9][0-9]{,8})")


def read_conllu(path: str | PathLike[str]) -> Iterator[Sentence]:
    """Read a file as a stream, with one sentence in memory at a time.

    One empty line follows each sentence, also the last one, so that a truncated file is an error.

    Raises:
        ConlluError: A line is malformed; the message starts with ``path:line``. Lines end in LF;
            CR LF is an error.

    >>> for sentence in read_conllu("en_ewt-ud-dev.conllu"):  # doctest: +SKIP
    ...     print(sentence.sent_id, sentence.tree.root)
    """
    with Path(path).open("rb") as file:
        yield from _sentences(_decoded(file, str(path)), str(path))


def parse_conllu(text: str, path: str = "<string>") -> Iterator[Sentence]:
    r"""Read sentences from a string; errors name ``path``. The empty line at its end is optional.

    >>> [s.words[0].form for s in parse_conllu("1\tHi\t_\t_\t_\t_\t0\troot\t_\t_")]
    ['Hi']
    """
    end = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    # Bytes, so that a lone surrogate is found where a file's bad byte would be.
    file = BytesIO(f"{text}{end}".encode("utf-8", "surrogatepass"))
    yield from _sentences(_decoded(file, path), path)


def _decoded(lines: Iterable[bytes], path: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _error(
                path,
                number,
                f"byte {error.start + 1} of the line is not UTF-8 ({error.reason}); "
                "CoNLL-U is always UTF-8: convert the file",
            ) from None


def _sentences(lines: Iterable[str], path: str) -> Iterator[Sentence]:
    reader = _Lines()
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            if line == "\n":
                yield reader.sentence()
                reader = _Lines()
            else:
                reader.add(line)
        except _LineError as fault:
            raise _error(path, number, str(fault)) from None
    if not reader.is_empty:
        raise _error(
            path,
            number,
            "the file ends inside a sentence: one empty line follows its last word; "
            "the file may be cut off",
        )


def _error(path: str, line: int, message: str) -> ConlluError:
    return ConlluError(f"{path}:{line}: {message}", path=path, line=line)


class _LineError(Exception):
    """A fault in a line, without the number of the line."""


class _Lines:
    def __init__(self) -> None:
        self._comments: list[str] = []
        self._words: list[Word] = []
        self._tokens: list[Token] = []
        self._empty_nodes: list[EmptyNode] = []
        self._next_id = "1"
        self._range: list[str] = []  # columns of the last multiword token
        self._range_start = 0  # its words, which follow its line
        self._range_end = 0
        self._last_node = (0, 0)

    @property
    def is_empty(self) -> bool:
        return not (self._comments or self._words or self._range or self._empty_nodes)

    def sentence(self) -> Sentence:
        if not self._words:
            raise _LineError(
                "an empty line with no words before it; one empty line follows each sentence"
            )
        if self._range_end > len(self._words):
            raise _LineError(
                f"the sentence ends after word {len(self._words)}, but its last multiword token "
                f"ends at word {self._range_end}"
            )
        return Sentence(
            words=tuple(self._words),
            tokens=tuple(self._tokens),
            comments=tuple(self._comments),
            empty_nodes=tuple(self._empty_nodes),
        )

    def add(self, line: str) -> None:
        if "\r" in line:
            raise _LineError(
                "a carriage return; lines of CoNLL-U end in LF alone: convert the file"
            )
        line = line.removesuffix("\n")
        if line[0] == "#":
            if self._words or self._range or self._empty_nodes:
                raise _LineError(
                    "a comment inside a sentence; comments stand before the first word, and an "
                    "empty line ends a sentence"
                )
            self._comments.append(line)
            return
        columns = line.split("\t")
        if len(columns) != 10 or "" in columns:
            raise _LineError(_column_fault(line, columns))
        if columns[0] == self._next_id:
            self._add_word(columns)
        elif "-" in columns[0]:
            self._add_range(columns)
        elif "." in columns[0]:
            self._add_empty_node(columns)
        else:
            raise _LineError(self._id_fault(columns[0]))

    def _add_word(self, columns: list[str]) -> None:
        form = columns[1]  # "_" is a form like any other
        lemma, upos, xpos, feats, head, deprel, deps, misc = _values(columns)
        number = len(self._words) + 1
        self._words.append(
            Word(number, form, lemma, upos, xpos, feats, _head(head), deprel, deps, misc)
        )
        if number > self._range_end:
            self._tokens.append(Token(form, (number,)))
        elif number == self._range_end:
            self._tokens.append(_multiword(self._range, self._range_start, number))
        self._next_id = str(number + 1)

    def _add_range(self, columns: list[str]) -> None:
        found = _RANGE.fullmatch(columns[0])
        if found is None:
            raise _LineError(self._id_fault(columns[0]))
        first, last = int(found[1]), int(found[2])
        if first <= self._range_end:
            raise _LineError(
                f"multiword token {columns[0]} overlaps the one before it, which ends at word "
                f"{self._range_end}"
            )
        if first != len(self._words) + 1 or last < first:
            raise _LineError(self._id_fault(columns[0]))
        self._range, self._range_start, self._range_end = columns, first, last

    def _add_empty_node(self, columns: list[str]) -> None:
        found = _EMPTY_NODE.fullmatch(columns[0])
        node = (int(found[1]), int(found[2])) if found else None
        is_split = self._range_start > len(self._words)  # between a range and its first word
        if node is None or node != self._next_node() or is_split:
            raise _LineError(self._id_fault(columns[0]))
        self._empty_nodes.append(EmptyNode(node, tuple(columns[1:])))
        self._last_node = node

    def _next_node(self) -> tuple[int, int]:
        word, index = self._last_node
        return (word, index + 1) if word == len(self._words) else (len(self._words), 1)

    def _id_fault(self, found: str) -> str:
        hint = "; is the empty line before this sentence missing?" if found == "1" else ""
        major, minor = self._next_node()
        return (
            f"id {found!r} is out of sequence: {self._next_id}, a multiword token "
            f"{self._next_id}-... or an empty node {major}.{minor} may stand here{hint}"
        )


def _multiword(columns: list[str], first: int, last: int) -> Token:
    lemma, upos, xpos, feats, head, deprel, deps, misc = _values(columns)
    ids = tuple(range(first, last + 1))
    return Token(
        *(columns[1], ids, lemma, upos, xpos, feats, head, deprel, deps, misc),
        span_line=first == last,
    )


def _values(columns: list[str]) -> list[str | None]:
    return [None if column == "_" else column for column in columns[2:]]


def _head(head: str | None) -> int | None:
    if head is None:
        return None
    try:
        value = int(head)
    except ValueError:
        value = -1
    if str(value) != head or value < 0:
        raise _LineError(f"HEAD is {head!r}; it must be a word id, 0 for the root, or _ for none")
    return value


def _column_fault(line: str, columns: list[str]) -> str:
    if line.startswith("\ufeff"):
        return "the file starts with a byte order mark; CoNLL-U has none: remove it"
    if not line.strip():
        return "a line of white space; the line between two sentences must be empty"
    if len(columns) == 10:
        return f"column {COLUMNS[columns.index('')]} is empty; CoNLL-U writes _ for nothing"
    return f"{len(columns)} columns instead of 10, separated by tabs"
