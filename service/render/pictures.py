"""Pictures of a sentence of CoNLL-U: its tree, the wordpieces under its words, its matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from service.pipeline.features import align_pieces, shown_matrices
from service.pipeline.records import MatrixName, Pieces
from service.tokenizers import LoadedTokenizer
from syntax import Parse
from syntax.drawing.alignment import Piece, draw_alignment
from syntax.drawing.graph import graph_of_sentence
from syntax.drawing.heatmap import draw_matrix
from syntax.drawing.svg import Picture
from syntax.drawing.trees import LAYOUTS
from syntax.errors import NoSentenceError, SentenceTooLongError, SpecError, TextTooLongError
from syntax.subwords import themselves
from syntax.trees.conllu import format_conllu, parse_conllu, parse_from_sentences

PictureName = Literal["arcs", "hierarchy", "wordpieces", "distance", "depth", "ancestor"]

Int32 = NDArray[np.int32]

_MATRICES: Final[tuple[MatrixName, ...]] = get_args(MatrixName)


@dataclass(frozen=True)
class Drawn:
    """A drawn sentence.

    Attributes:
        texts: The text of every sentence that came.
        conllu: The drawn one.
        pictures: SVG by name; a sentence without wordpieces has no picture of them.
    """

    texts: list[str]
    conllu: str
    pictures: dict[str, str]


@dataclass(frozen=True)
class Limits:
    """The largest input that is drawn.

    Attributes:
        characters: Of the text behind the CoNLL-U.
        nodes: Words and empty nodes of a sentence; drawing takes time quadratic in them.
        pieces: Rows of a matrix before it is cut to what can be read.
        lines: Of CoNLL-U, of all sentences.
    """

    characters: int
    nodes: int
    pieces: int
    lines: int


def draw_conllu(
    conllu: str,
    chosen: int,
    names: Sequence[PictureName],
    limits: Limits,
    tokenizer: LoadedTokenizer | None,
    policy: str,
) -> Drawn:
    """Draw one sentence of a document.

    The tokenizer sees the whole text, as it does in ``POST /parse``: the pieces of a sentence may
    depend on the one before.

    Args:
        conllu: The document.
        chosen: Which sentence, 0-based.
        names: The pictures wanted.
        limits: What is refused.
        tokenizer: For wordpieces; without one, matrices are over words.
        policy: How the pieces of a word hang, a name in `syntax.subwords.POLICIES`.

    Raises:
        NoSentenceError: There is no sentence.
        SpecError: There is none of this number.
        TextTooLongError: The text, or the document, is longer than the limit.
        SentenceTooLongError: The sentence has more nodes or relations than the limit.
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
    _check_size(max(len(graph.nodes), len(graph.edges)), limits.nodes)
    parts: dict[str, Callable[[], Picture]] = {
        layout: partial(draw, graph, sentence.text) for layout, draw in LAYOUTS.items()
    }
    if not {*names} <= {*parts}:
        parse = parse_from_sentences(sentences, layout="spaces")
        if len(parse.text) > limits.characters:
            raise TextTooLongError(
                f"the text has {len(parse.text)} characters; wordpieces and matrices are drawn for "
                f"at most {limits.characters} (max_chars_per_text). Send fewer sentences",
                characters=len(parse.text),
                limit=limits.characters,
            )
        pieces = None
        if tokenizer is not None:
            pieces = align_pieces(parse, *tokenizer.encode(parse.text), policy)
        parts |= _derived(parse, chosen, sentence.text, pieces, limits.pieces)
    pictures: dict[str, str] = {name: parts[name]().svg() for name in names if name in parts}
    return Drawn([one.text for one in sentences], format_conllu([sentence]), pictures)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise SentenceTooLongError(
            f"the sentence has {size} nodes or relations; at most {limit} are drawn "
            "(max_words_per_sentence, never over 1,000). Split it, or choose another sentence",
            words=size,
            limit=limit,
        )


def _derived(
    parse: Parse, chosen: int, title: str, pieces: Pieces | None, limit: int
) -> Mapping[str, Callable[[], Picture]]:
    """How to draw what follows from a tree: pieces, and matrices over them or over words."""
    first, end = parse.word_ranges()[chosen]
    forms = parse.form[first:end]
    if pieces is None:
        parents = parse.parents()[first:end]
        local = np.where(parents < 0, -1, parents - first).astype(np.int32)
        return _heat_maps(local, themselves(local), forms, range(end - first), limit)
    inside = _pieces_of(pieces.word_ids, first, end)
    words = [word - first if word >= first else None for word in pieces.word_ids[inside].tolist()]
    shown = [parse.text[start:stop] for start, stop in pieces.offsets[inside].tolist()]
    parents, source = (
        _within(column[inside], inside, absent)
        for column, absent in ((pieces.parents, -1), (pieces.source, None))
    )
    below = [
        Piece(form, number, word)
        for form, number, word in zip(shown, pieces.input_ids[inside].tolist(), words, strict=True)
    ]
    return {
        "wordpieces": partial(draw_alignment, forms, below, f"Wordpieces: {title}"),
        **_heat_maps(parents, source, shown, words, limit),
    }


def _pieces_of(word_ids: Int32, first: int, end: int) -> slice:
    """The pieces of a sentence; a piece without a word is where the last word was."""
    reached = np.maximum.accumulate(np.append(0, word_ids))[1:]
    return slice(*np.searchsorted(reached, (first, end)).tolist())


def _within(targets: Int32, inside: slice, absent: int | None) -> Int32:
    """Positions of pieces, counted from the first piece of a sentence.

    Args:
        targets: Positions in the text.
        inside: The pieces of the sentence.
        absent: What a piece outside of the sentence becomes; ``None`` for the piece itself.
    """
    is_inside = (inside.start <= targets) & (targets < inside.stop)
    outside = themselves(targets) if absent is None else np.int32(absent)
    return np.where(is_inside, targets - inside.start, outside).astype(np.int32)


def _heat_maps(
    parents: Int32, source: Int32, labels: Sequence[str], words: Iterable[int | None], limit: int
) -> dict[str, Callable[[], Picture]]:
    """The matrices of a sentence; ``words`` are positions in it."""
    if len(parents) > limit:
        raise TextTooLongError(
            f"the sentence has {len(parents)} pieces; matrices are drawn for at most {limit} "
            "(max_matrix_pieces). Choose a shorter sentence, or ask only for its tree",
            pieces=len(parents),
            limit=limit,
        )
    ids = ["" if word is None else str(word + 1) for word in words]
    matrices = shown_matrices(parents, source, _MATRICES)
    return {
        name: partial(draw_matrix, name, matrix, labels, ids) for name, matrix in matrices.items()
    }
