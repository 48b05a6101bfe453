"""Pictures of an answer: each sentence, its wordpieces, and the matrices of the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from syntax.drawing.alignment import Piece, draw_alignment
from syntax.drawing.heatmap import draw_matrix
from syntax.drawing.svg import Picture
from syntax.drawing.trees import Layout, draw_sentence

if TYPE_CHECKING:
    from clients.client.results import ParsedItem


def draw_item(item: ParsedItem, layout: Layout = "arcs") -> list[Picture]:
    trees = [draw_sentence(sentence, layout) for sentence in item.sentences]
    pieces = item.wordpieces
    labels = item.parse.form if pieces is None else pieces.forms(item.text)
    matrices = [draw_matrix(name, matrix, labels) for name, matrix in item.matrices.items()]
    return [*trees, *_alignments(item), *matrices]


def _alignments(item: ParsedItem) -> Iterator[Picture]:
    """One picture for each sentence; a piece without a word is where the last word was."""
    pieces = item.wordpieces
    if pieces is None:
        return
    forms = pieces.forms(item.text)
    reached = np.maximum.accumulate(np.append(0, pieces.word_ids))[1:]
    for (first, end), sentence in zip(item.parse.word_ranges(), item.sentences, strict=True):
        inside = np.flatnonzero((first <= reached) & (reached < end)).tolist()
        words = [int(pieces.word_ids[at]) for at in inside]
        yield draw_alignment(
            item.parse.form[first:end],
            [
                Piece(forms[at], int(pieces.input_ids[at]), word - first if word >= 0 else None)
                for at, word in zip(inside, words, strict=True)
            ],
            f"Wordpieces: {sentence.text}",
        )
