"""One CoNLL-U sentence: syntactic words, surface tokens, empty nodes, comments.

Every column is kept as the file has it (``None`` for ``_``), so that writing gives back the
bytes that were read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from syntax.trees.spacing import space_after, space_before, surface
from syntax.trees.tree import DependencyTree


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
    ``span_line`` is set where a file writes one word as a range (``4-4``).
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
    span_line: bool = False

    @property
    def is_multiword(self) -> bool:
        """Whether the token is written as a range (a range of one word counts)."""
        return self.span_line or len(self.word_ids) > 1


@dataclass(frozen=True, slots=True)
class EmptyNode:
    """A node of the enhanced graph that no surface word realises (id ``8.1``).

    ``columns`` are the nine columns after the id, as the file has them.
    """

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
        """Value of ``# text = ...``, or the tokens joined as their MISC columns say."""
        written = self.comment("text")
        return written if written is not None else self.spelled_out().strip()

    def spelled_out(self) -> str:
        """The tokens with all white space around them, whatever ``# text`` says."""
        parts = ((token.form, self.misc_of(token)) for token in self.tokens)
        return "".join(
            space_before(misc) + surface(form, misc) + space_after(misc) for form, misc in parts
        )

    def comment(self, key: str) -> str | None:
        """Value of the first comment ``# key = value``; ``None`` if there is none.

        White space around the key, and one space before the value, may be missing or not.
        """
        for line in self.comments:
            name, separator, value = line[1:].partition("=")
            if separator and name.strip() == key:
                return value.removeprefix(" ")
        return None

    def misc_of(self, token: Token) -> str | None:
        """The MISC column that speaks for a token's spacing: its range line's or its word's."""
        return token.misc if token.is_multiword else self.words[token.word_ids[0] - 1].misc
