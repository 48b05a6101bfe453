"""Score a UDPipe model on a treebank split, from raw text and from gold tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ufal.udpipe

from service.training.component import TrainingError
from syntax import Sentence
from syntax.trees.conllu import format_conllu, parse_conllu, raw_text
from syntax.trees.scoring import evaluate

Scores = dict[str, dict[str, dict[str, float]]]
"""F1 in percent by split, input (``raw``, ``gold_tokens``) and metric."""

_DEFAULT = ufal.udpipe.Pipeline.DEFAULT
_NONE = ufal.udpipe.Pipeline.NONE


def evaluate_model(model: Any, gold: Sequence[Sentence]) -> dict[str, dict[str, float]]:
    """F1 of every CoNLL 2018 metric, in percent, by input.

    ``raw`` gives the model the running text; ``gold_tokens`` the gold sentences and words, so
    that segmentation is perfect and the tagger and the parser are measured alone.
    """
    raw = _process(model, "tokenize", _DEFAULT, raw_text(gold))
    gold_tokens = _process(model, "conllu", _DEFAULT, format_conllu(gold))
    return {"raw": _figures(gold, raw), "gold_tokens": _figures(gold, gold_tokens)}


def tag_sentences(model: Any, sentences: Iterable[Sentence]) -> list[Sentence]:
    """Replace the tags of sentences by the model's; heads and relations stay."""
    return _process(model, "conllu", _NONE, format_conllu(sentences))


def _process(model: Any, reader: str, parser: str, text: str) -> list[Sentence]:
    error = ufal.udpipe.ProcessingError()
    pipeline = ufal.udpipe.Pipeline(model, reader, _DEFAULT, parser, "conllu")
    output = pipeline.process(text, error)
    if error.occurred():
        raise TrainingError(f"UDPipe cannot analyse the treebank: {error.message}")
    return list(parse_conllu(output))


def _figures(gold: Iterable[Sentence], system: Iterable[Sentence]) -> dict[str, float]:
    return {name: round(score.f1, 2) for name, score in evaluate(gold, system).items()}
