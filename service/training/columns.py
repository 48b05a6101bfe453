"""Columns and folds of sentences for UDPipe's components."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from service.training.recipe import Recipe
from syntax import Sentence, Word


def strip_columns(sentences: Iterable[Sentence], columns: Sequence[str] = ()) -> list[Sentence]:
    """Empty LEMMA, XPOS and FEATS unless they are in *columns*, and the enhanced graph."""
    return [
        replace(
            sentence,
            words=tuple(_stripped(word, columns) for word in sentence.words),
            empty_nodes=(),
        )
        for sentence in sentences
    ]


def filled_columns(sentences: Sequence[Sentence], columns: Sequence[str]) -> tuple[str, ...]:
    words = [word for sentence in sentences for word in sentence.words]
    return tuple(
        column for column in columns if any(getattr(word, column) is not None for word in words)
    )


def fold_of(position: int, recipe: Recipe) -> int:
    """Fold of a sentence: blocks of sentences are dealt out in turn."""
    return position // recipe.block % recipe.folds


def _stripped(word: Word, columns: Sequence[str]) -> Word:
    return replace(
        word,
        lemma=word.lemma if "lemma" in columns else None,
        xpos=word.xpos if "xpos" in columns else None,
        feats=word.feats if "feats" in columns else None,
        deps=None,
    )
