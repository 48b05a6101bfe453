"""One CoNLL-U sentence: syntactic words, surface tokens, empty nodes, comments.

Every column is kept as the file has it (``None`` for ``_``), so that writing gives back the
bytes that were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from syntax.tree import DependencyTree


@dataclass(frozen=True, slots=True)
class Word:
    """A syntactic word: a line of CoNLL-U with an integer id."""

    id: int
    form: str
    lemma: str | None = None
    upos: str | None = None
    xpos: str | None = None
    feats: str | None = None
    head: int | None = None
    deprel: str | None = None
    deps: str | None = None
    misc: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A surface token: one word, or several (a multiword token, a line ``4-5``).

    ``lemma`` ... ``deps`` repeat the range line's own columns, which UD leaves empty but for
    ``feats`` (``Typo=Yes``); for a single word they stay ``None`` and its ``Word`` has them.
    """

    form: str
    word_ids: tuple[int, ...]
    lemma: str | None = None
    upos: str | None = None
    xpos: str | None = None
    feats: str | None = None
    head: str | None = None
    deprel: str | None = None
    deps: str | None = None
    misc: str | None = None

    @property
    def is_multiword(self) -> bool:
        """Whether the token was written as a range (a range of one word counts)."""
        return self.span_line or len(self.word_ids) > 1

    span_line: bool = False


@dataclass(frozen=True, slots=True)
class EmptyNode:
    """A node of the enhanced graph that no surface word realises (id ``8.1``)."""

    id: tuple[int, int]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence as UD sees it.

    Attributes:
        words: Syntactic words, ids 1, 2, ... without gaps.
        tokens: Surface tokens; together they cover every word once, in order.
        comments: The comment lines, each with its leading ``#``.
        empty_nodes: Nodes of the enhanced graph, in file order.
    """

    words: tuple[Word, ...]
    tokens: tuple[Token, ...]
    comments: tuple[str, ...] = ()
    empty_nodes: tuple[EmptyNode, ...] = ()

    @cached_property
    def tree(self) -> DependencyTree:
        """The basic tree.

        Raises:
            TreeError: The heads do not form one tree.
        """
        return DependencyTree(
            [word.head for word in self.words], [word.deprel or "_" for word in self.words]
        )

    @property
    def sent_id(self) -> str | None:
        """Value of ``# sent_id = ...``."""
        return self.comment("sent_id")

    @cached_property
    def text(self) -> str:
        """Value of ``# text = ...``, or the tokens joined as their ``SpaceAfter`` says."""
        written = self.comment("text")
        return written if written is not None else "".join(self._pieces()).rstrip(" ")

    def comment(self, key: str) -> str | None:
        """Value of the first comment ``# key = value``; ``None`` if there is none."""
        prefix = f"# {key} = "
        found = (line for line in self.comments if line.startswith(prefix))
        line = next(found, None)
        return None if line is None else line[len(prefix) :]

    def _pieces(self) -> Iterator[str]:
        for token in self.tokens:
            yield token.form
            if not has_no_space_after(self.misc_of(token)):
                yield " "

    def misc_of(self, token: Token) -> str | None:
        """The MISC column that speaks for a token's spacing: its range line's or its word's."""
        return token.misc if token.is_multiword else self.words[token.word_ids[0] - 1].misc


def has_no_space_after(misc: str | None) -> bool:
    """Whether a MISC column holds ``SpaceAfter=No``."""
    return misc is not None and "SpaceAfter=No" in misc.split("|")
