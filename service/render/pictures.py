"""Pictures of a sentence of CoNLL-U: its tree, the wordpieces under its words, its matrices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from service.pipeline.features import align_pieces, shown_matrices
from service.pipeline.records import MatrixName
from service.tokenizers import LoadedTokenizer
from syntax import Parse
from syntax.drawing.alignment import Piece, draw_alignment
from syntax.drawing.graph import graph_of_sentence
from syntax.drawing.heatmap import draw_matrix, has_path
from syntax.drawing.svg import Picture
from syntax.drawing.trees import LAYOUTS
from syntax.errors import (
    DeadlineError,
    NoSentenceError,
    OverloadedError,
    SentenceTooLongError,
    SpecError,
    TextTooLongError,
)
from syntax.subwords import themselves
from syntax.trees.conllu import format_conllu, parse_conllu, parse_from_sentences

PictureName = Literal["arcs", "hierarchy", "wordpieces", "distance", "depth", "ancestor"]

LARGEST: Final = 256

MOST_WAITING: Final = 8
"""Drawings that may wait; 429 beyond. One takes up to a third of a second."""

T = TypeVar("T")

Int32 = NDArray[np.int32]

_MATRICES: Final[tuple[MatrixName, ...]] = get_args(MatrixName)


@dataclass(frozen=True)
class Matrices:
    """Matrices of a sentence, in JSON.

    Attributes:
        total: Wordpieces (or words) of the sentence; the first `LARGEST` are answered.
        words: The id of each one's word; empty for a piece without a word.
        values: By name: numbers, or truth values; ``None`` where there is no path.
    """

    total: int
    labels: list[str]
    words: list[str]
    values: dict[MatrixName, list[Any]]


@dataclass(frozen=True)
class Drawn:
    """A drawn sentence, and all texts; without wordpieces it has no picture of them."""

    texts: list[str]
    conllu: str
    pictures: dict[str, str]
    matrices: Matrices | None


@dataclass(frozen=True)
class Limits:
    """The largest input; drawing takes time quadratic in ``nodes``, words and empty nodes."""

    characters: int
    nodes: int
    pieces: int
    lines: int


class Drawings:
    """Draws one picture after the other, each in ``seconds``; belongs to one event loop.

    In the threads that all requests share, drawing would delay everybody's parses.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, "drawing")
        self._waiting = 0

    async def run(self, draw: Callable[[], T]) -> T:
        if self._waiting >= MOST_WAITING:
            raise OverloadedError(
                f"{self._waiting} drawings wait already; try again in a second", retry_after=1
            )
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.get_running_loop().run_in_executor(self._thread, draw)
        except TimeoutError:
            raise DeadlineError(
                f"the sentence was not drawn within {self._seconds:g} s; ask for fewer pictures"
            ) from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def draw_conllu(
    conllu: str,
    chosen: int,
    names: Sequence[PictureName],
    matrices: Sequence[MatrixName],
    limits: Limits,
    tokenizer: LoadedTokenizer | None,
    policy: str,
) -> Drawn:
    """Draw one sentence of a document, counted from 0.

    The tokenizer sees the whole text, as in ``POST /parse``: the pieces of a sentence may depend on
    the one before. Without one, matrices are over words.
    """
    if (lines := conllu.count("\n")) > limits.lines:
        raise TextTooLongError(
            f"`conllu` has {lines} lines; sentences are drawn from documents of at most "
            f"{limits.lines}. Send fewer sentences",
            lines=lines,
            limit=limits.lines,
        )
    sentences = list(parse_conllu(conllu, "conllu"))
    if not sentences:
        raise NoSentenceError("`conllu` has no sentence; send at least one, with its ten columns")
    if chosen >= len(sentences):
        raise SpecError(
            f"`sentence` is {chosen}, and {len(sentences)} sentences came; the first one is 0",
            sentence=chosen,
            sentences=len(sentences),
        )
    sentence = sentences[chosen]
    graph = graph_of_sentence(sentence)
    if (size := max(len(graph.nodes), len(graph.edges))) > limits.nodes:
        raise SentenceTooLongError(
            f"the sentence has {size} nodes or relations; at most {limits.nodes} are drawn "
            "(max_words_per_sentence, never over 1,000). Split it, or choose another sentence",
            words=size,
            limit=limits.nodes,
        )
    parts: dict[str, Callable[[], Picture]] = {
        layout: partial(draw, graph, sentence.text) for layout, draw in LAYOUTS.items()
    }
    numbers = None
    if matrices or not {*names} <= {*parts}:
        parse = parse_from_sentences(sentences, layout="spaces")
        if len(parse.text) > limits.characters:
            raise TextTooLongError(
                f"the text has {len(parse.text)} characters; wordpieces and matrices are drawn for "
                f"at most {limits.characters} (max_chars_per_text). Send fewer sentences",
                characters=len(parse.text),
                limit=limits.characters,
            )
        derived = _derive(parse, chosen, tokenizer, policy, limits.pieces)
        parts |= derived.pictures(sentence.text)
        numbers = derived.numbers(matrices) if matrices else None
    pictures: dict[str, str] = {name: parts[name]().svg() for name in names if name in parts}
    texts = [one.text for one in sentences]
    return Drawn(texts, format_conllu([sentence]), pictures, numbers)


@dataclass(frozen=True)
class _Derived:
    """The pieces of a tree, or its words without a tokenizer, and their forest.

    Attributes:
        words: The id of each one's word; empty for a piece without a word.
        parents, source: The forest, as `shown_matrices` takes it.
        limit: Of the rows of a matrix.
    """

    forms: Sequence[str]
    pieces: Sequence[Piece] | None
    labels: list[str]
    words: list[str]
    parents: Int32
    source: Int32
    limit: int

    def pictures(self, title: str) -> dict[str, Callable[[], Picture]]:
        drawn: dict[str, Callable[[], Picture]] = {
            name: partial(self._heat_map, name) for name in _MATRICES
        }
        if self.pieces is not None:
            shown = partial(draw_alignment, self.forms, self.pieces, f"Wordpieces: {title}")
            drawn["wordpieces"] = shown
        return drawn

    def numbers(self, names: Sequence[MatrixName]) -> Matrices:
        cut = slice(LARGEST)
        values = {}
        for name in names:
            matrix = self._matrices[name]
            shown = matrix[cut] if matrix.ndim == 1 else matrix[cut, cut]
            cells = shown.astype(object)
            cells[~has_path(name, shown)] = None
            values[name] = cells.tolist()
        return Matrices(len(self.labels), self.labels[cut], self.words[cut], values)

    def _heat_map(self, name: MatrixName) -> Picture:
        return draw_matrix(name, self._matrices[name], self.labels, self.words)

    @cached_property
    def _matrices(self) -> dict[str, NDArray[Any]]:
        size = len(self.parents)
        if size > self.limit:
            raise TextTooLongError(
                f"the sentence has {size} pieces; matrices are drawn for at most {self.limit} "
                "(max_matrix_pieces). Choose a shorter sentence, or ask only for its tree",
                pieces=size,
                limit=self.limit,
            )
        return shown_matrices(self.parents, self.source, _MATRICES)


def _derive(
    parse: Parse,
    chosen: int,
    tokenizer: LoadedTokenizer | None,
    policy: str,
    limit: int,
) -> _Derived:
    first, end = parse.word_ranges()[chosen]
    forms = parse.form[first:end]
    if tokenizer is None:
        parents = parse.parents()[first:end]
        local = np.where(parents < 0, -1, parents - first).astype(np.int32)
        ids = [str(at) for at in range(1, len(forms) + 1)]
        return _Derived(forms, None, [*forms], ids, local, themselves(local), limit)
    all_pieces = align_pieces(parse, *tokenizer.encode(parse.text), policy)
    inside = _pieces_of(all_pieces.word_ids, first, end)
    ends = zip(
        all_pieces.input_ids[inside].tolist(),
        all_pieces.word_ids[inside].tolist(),
        all_pieces.offsets[inside].tolist(),
        strict=True,
    )
    unknown = tokenizer.unknown()
    pieces = [
        Piece(
            unknown[1] if unknown and number == unknown[0] else parse.text[start:stop],
            number,
            word - first if word >= first else None,
        )
        for number, word, (start, stop) in ends
    ]
    parents, source = (
        _within(column[inside], inside, absent)
        for column, absent in ((all_pieces.parents, -1), (all_pieces.source, None))
    )
    labels = [piece.form for piece in pieces]
    words = ["" if piece.word is None else str(piece.word + 1) for piece in pieces]
    return _Derived(forms, pieces, labels, words, parents, source, limit)


def _pieces_of(word_ids: Int32, first: int, end: int) -> slice:
    """Pieces of a sentence; a piece without a word is where the last word was."""
    reached = np.maximum.accumulate(np.append(0, word_ids))[1:]
    return slice(*np.searchsorted(reached, (first, end)).tolist())


def _within(targets: Int32, inside: slice, absent: int | None) -> Int32:
    """Positions from the first piece; ones outside become ``absent``, or stay themselves."""
    is_inside = (inside.start <= targets) & (targets < inside.stop)
    outside = themselves(targets) if absent is None else np.int32(absent)
    return np.where(is_inside, targets - inside.start, outside).astype(np.int32)
