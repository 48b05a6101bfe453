"""Align wordpieces with words, many-to-many, by the characters that both cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.alignment import kernels
from syntax.errors import InputError
from syntax.trees.parse import Parse
from syntax.trees.tree import DependencyTree

Int32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pieces (L) and the words (W) of a text, many-to-many; each piece has one *owner* or none.

    *du chat* in UD is *de le chat*; a vocabulary may cut it into ``du ch ##at``::

        indptr    [0, 2, 3, 4]        words of piece 0: indices[0:2]
        indices   [0, 1, 2, 2]        ascending within a row
        word_ids  [0, 2, 2]           de is the owner of the piece of the shared span
        pieceless [False, True, False]

    Attributes:
        indptr, indices: Bounds of rows (L + 1,), and the words of each piece (pairs,). int32.
        word_ids: Owner of each piece, -1 for none (special tokens, white space). (L,), int32.
        pieceless: Words that own no piece, even if they share one. *Shape:* (W,), bool.
    """

    indptr: Int32
    indices: Int32
    word_ids: Int32
    pieceless: NDArray[np.bool_]

    def words_of(self, piece: int) -> Int32:
        return self.indices[self.indptr[piece] : self.indptr[piece + 1]]


def align_pieces(text: str, piece_offsets: ArrayLike, parse: Parse) -> Alignment:
    """Align pieces with words by overlap of their character spans, in linear time.

    ``text`` is ``parse.text``, and ``piece_offsets`` (L, 2) are in order. Outer white space does
    not count as part of a piece. The owner of a piece is the word with the largest overlap, the
    leftmost of equals. Of the words that share the span of a multiword token, only the first one
    whose head is outside of the token can be an owner.

    >>> from syntax.trees.conllu import parse_conllu, parse_from_sentences
    >>> columns = "1-2 du _ _ _ _ _ _ _ _|1 de _ _ _ _ 3 case _ _|2 le _ _ _ _ 3 det _ _"
    >>> columns += "|3 chat _ _ _ _ 0 root _ _"
    >>> lines = columns.replace(" ", chr(9)).replace("|", chr(10))
    >>> parse = parse_from_sentences(list(parse_conllu(lines)))
    >>> align_pieces("du chat", [(0, 2), (3, 5), (5, 7)], parse).word_ids
    array([0, 2, 2], dtype=int32)
    """
    if text != parse.text:
        raise InputError("the tokenized text is not the parsed one; tokenize parse.text")
    spans = trimmed(text, offset_array(piece_offsets))
    parents, _ = checked_parents(parse)
    word_start, word_end = int32(parse.word_start), int32(parse.word_end)
    carries = kernels.carriers(parents, word_start, word_end, int32(parse.token_first_word))
    owner = kernels.owners(spans, word_start, word_end, carries)
    indptr, indices = kernels.overlaps(spans, word_start, word_end)
    return Alignment(indptr, indices, owner, kernels.first_pieces(owner, parse.word_count) < 0)


def attach_heads(parse: Parse, alignment: Alignment) -> Int32:
    """The dependency tree over pieces: later pieces of a word hang from its first.

    A first piece hangs from the first piece of its word's nearest ancestor that owns one. Of the
    pieces without such an ancestor, the first is the root of the sentence and the others hang from
    it. The parent of a root is -1, of a piece without a word -2. *Shape:* (L,), int32.
    """
    parents, sentence_of = checked_parents(parse)
    sentences = len(parse.sentence_first_word)
    return kernels.attach(alignment.word_ids, parents, sentence_of, sentences)


def int32(values: Sequence[int]) -> Int32:
    return np.array(values, dtype=np.int32)


def code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def offset_array(piece_offsets: ArrayLike) -> Int32:
    return np.array(piece_offsets, dtype=np.int32).reshape(-1, 2)


def trimmed(text: str, offsets: Int32) -> Int32:
    wrong, spans = kernels.trim(code_points(text), offsets)
    if wrong >= 0:
        raise outside_text(wrong, offsets, len(text))
    return spans


def outside_text(piece: int, offsets: Int32, length: int) -> InputError:
    start, end = offsets[piece].tolist()
    return InputError(
        f"piece {piece} covers the characters {start} to {end} of a text with {length}; "
        "tokenize the text that was parsed",
        piece=piece,
    )


def checked_parents(parse: Parse) -> tuple[Int32, Int32]:
    """Parent and sentence of each word in the whole text, checked to be trees. (W,) each."""
    starts = int32(parse.sentence_first_word)
    parents, sentence_of = kernels.global_parents(int32(parse.head), starts)
    if not kernels.are_trees(parents, sentence_of, len(starts)):
        reject_trees(parse)
    return parents, sentence_of


def are_forests(parses: Sequence[Parse]) -> bool:
    """Check all heads in one compiled call; one of more than 32 bits raises `OverflowError`."""
    words = np.cumsum([0, *(parse.word_count for parse in parses)])
    starts = [int32(parse.sentence_first_word) for parse in parses]
    first = [own + before for own, before in zip(starts, words.astype(np.int32), strict=False)]
    heads = np.fromiter(chain.from_iterable(parse.head for parse in parses), np.int32)
    sentences = np.concatenate([np.empty(0, np.int32), *first])
    parents, sentence_of = kernels.global_parents(heads, sentences)
    return bool(kernels.are_trees(parents, sentence_of, len(sentences)))


def reject_trees(parse: Parse) -> None:
    for first, end in parse.word_ranges():
        DependencyTree(parse.head[first:end], [rel or "_" for rel in parse.deprel[first:end]])
