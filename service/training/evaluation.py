"""Score a parser on a treebank split, from raw text and from gold words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from service.parsers.base import Limits, ParseInput, Parser
from syntax import Parse, Sentence
from syntax.errors import ParsebankError
from syntax.trees.conllu import raw_text
from syntax.trees.parse import WORD_COLUMNS
from syntax.trees.scoring import evaluate

Scores = dict[str, dict[str, dict[str, float]]]
"""F1 in percent by split, input (``raw``, ``gold_tokens``) and metric."""

_LIMITS: Final = Limits(max_words_per_sentence=1_000_000)


def evaluate_parser(parser: Parser, gold: Sequence[Sentence]) -> dict[str, dict[str, float]]:
    """F1 of every CoNLL 2018 metric, in percent, by input.

    With ``gold_tokens`` segmentation is perfect, and tags and trees are measured alone.
    """
    whole = ParseInput("raw", text=raw_text(gold), long_sentences="split")
    pairs = zip(gold, parsed_words(parser, gold), strict=True)
    return {
        "raw": _figures(gold, parser.parse(whole, _LIMITS).sentences()),
        "gold_tokens": _figures(gold, [_annotated(*pair) for pair in pairs]),
    }


def parsed_words(parser: Parser, sentences: Iterable[Sentence]) -> Iterator[Parse]:
    items = [
        ParseInput("pretokenized", tokens=tuple(word.form for word in sentence.words))
        for sentence in sentences
    ]
    for found in parser.parse_many(items, _LIMITS):
        if isinstance(found, ParsebankError):
            raise found
        yield found


def _annotated(gold: Sentence, found: Parse) -> Sentence:
    """The gold sentence with the tags and the tree that were found for its words."""
    rows = zip(*(getattr(found, name) for name in WORD_COLUMNS), strict=True)
    words = (
        replace(word, **dict(zip(WORD_COLUMNS[1:], row[1:], strict=True)))
        for word, row in zip(gold.words, rows, strict=True)
    )
    return replace(gold, words=tuple(words), empty_nodes=())


def _figures(gold: Iterable[Sentence], system: Iterable[Sentence]) -> dict[str, float]:
    return {name: round(score.f1, 2) for name, score in evaluate(gold, system).items()}
