"""One CoNLL-U sentence, whose columns are kept as they stand in the file (``None`` for ``_``)."""

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

    ``lemma`` ... ``deps`` are those of the range line, mostly empty; for a single word they are
    ``None``. ``span_line`` is True if the file writes one word as a range (``4-4``).
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
        """True if the token is written as a range (a range of one word counts)."""
        return self.span_line or len(self.word_ids) > 1


@dataclass(frozen=True, slots=True)
class EmptyNode:
    """A node (id ``8.1``) of the enhanced graph without a word; nine columns follow its id."""

    id: tuple[int, int]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence of UD.

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
        """The basic tree; raises a `TreeError` where the heads do not form one."""
        return DependencyTree(
            [word.head for word in self.words], [word.deprel or "_" for word in self.words]
        )

    def _repr_svg_(self) -> str:
        from syntax.drawing.trees import draw_sentence

        return draw_sentence(self).svg()

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
        """The tokens with the white space that MISC records; ``# text`` is ignored."""
        parts = ((token.form, self.misc_of(token)) for token in self.tokens)
        return "".join(
            space_before(misc) + surface(form, misc) + space_after(misc) for form, misc in parts
        )

    def comment(self, key: str) -> str | None:
        """Value of the first comment ``# key = value``; white space around the key is optional."""
        for line in self.comments:
            name, separator, value = line[1:].partition("=")
            if separator and name.strip() == key:
                return value.removeprefix(" ")
        return None

    def misc_of(self, token: Token) -> str | None:
        """The MISC column with a token's spacing: that of its range line, or of its word."""
        return token.misc if token.is_multiword else self.words[token.word_ids[0] - 1].misc
