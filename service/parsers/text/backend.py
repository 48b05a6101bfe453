"""Parsers of running text: sentences, words, tags, lemmas and trees from one encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from service.parsers.base import (
    Backend,
    Limits,
    ModelFile,
    Outcome,
    ParseInput,
    ParserIdentity,
    attempt,
)
from service.parsers.bulk import BulkParser
from service.parsers.columns import Annotation
from service.parsers.onnx import onnx_version, read_tokenizer
from service.parsers.text.folder import FAMILY, find_text_parsers, read_card
from service.parsers.text.programs import Ints, Programs, WordStates
from service.parsers.text.reading import Found, Reading
from syntax.parsing.folder import TOKENIZER
from syntax.parsing.pieces import text_pieces, unknown_id
from syntax.parsing.scripts import apply_lemma_script
from syntax.trees.mst import are_root, best_relations, spanning_tree

_WINDOW: Final = 254
"""Pieces, as in training; more would cost time, and few sentences are longer."""


class TextParser(BulkParser):
    """A parser of running text."""

    lot_words = 4_000
    lot_texts = 256

    def __init__(self, model: ModelFile, identity: ParserIdentity) -> None:
        super().__init__(identity)
        card = read_card(model.path)
        self._labels, special = card.labels, card.special
        self._unknown = unknown_id(special)
        self._most = card.max_pieces - special.count(1)
        self._tokenizer = read_tokenizer(model.path / TOKENIZER, "train or pull the model again")
        self._programs = Programs(model.path, list(self._labels.tags), special)
        self._is_root = are_root(self._labels.deprel)
        self._names = {
            column: np.array(names, object)
            for column, names in (*self._labels.tags.items(), ("deprel", self._labels.deprel))
        }

    def _together(self, items: Sequence[ParseInput], limits: Limits) -> list[Outcome]:
        texts = [attempt(self._opened, item, limits) for item in items]
        readings = [text for text in texts if isinstance(text, Reading)]
        while waiting := [reading for reading in readings if not reading.is_done]:
            self._read_on(waiting)
        return [attempt(text.parse) if isinstance(text, Reading) else text for text in texts]

    def _opened(self, item: ParseInput, limits: Limits) -> Reading:
        pieces = text_pieces(item.joined, self._tokenizer, self._unknown)
        usual = min(_WINDOW, self._most)
        return Reading(item, pieces, self._labels, usual, self._most, limits)

    def _read_on(self, texts: Sequence[Reading]) -> None:
        read = self._programs.windows([text.window for text in texts])
        found = [
            (text, sentence)
            for text, window in zip(texts, read, strict=True)
            for sentence in text.take(window)
        ]
        annotations = self._annotated([sentence for _, sentence in found])
        for (text, sentence), annotation in zip(found, annotations, strict=True):
            text.add(sentence, annotation)

    def _annotated(self, sentences: Sequence[Found]) -> list[Annotation]:
        if not sentences:
            return []
        words = self._programs.words(
            np.concatenate([sentence.means for sentence in sentences]),
            np.concatenate([sentence.index for sentence in sentences]),
        )
        heads, first = [], 1
        for sentence in sentences:
            end = first + len(sentence.form)
            heads.append(_heads(words, first, end))
            first = end
        relations = self._relations(words, heads)
        annotations, first = [], 0
        for sentence, head in zip(sentences, heads, strict=True):
            part = slice(first, first + len(head))
            annotations.append(self._annotation(sentence, head, relations[part], words, part))
            first += len(head)
        return annotations

    def _relations(self, words: WordStates, heads: Sequence[Ints]) -> Ints:
        """Best relation of each word. *Shape:* (W,)."""
        lengths = [*map(len, heads)]
        head = np.concatenate(heads)
        before = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
        at = np.where(head > 0, before + head, 0)
        scores = self._programs.relations(words.relation_dependent[1:], words.relation_head[at])
        best: Ints = best_relations(scores[None], (head == 0)[None], self._is_root)[0]
        return best

    def _annotation(
        self, sentence: Found, head: Ints, relations: Ints, words: WordStates, part: slice
    ) -> Annotation:
        form = sentence.form
        columns: dict[str, Any] = {
            column: [None] * len(form) for column in ("lemma", "upos", "xpos", "feats")
        }
        for column, classes in words.tags.items():
            columns[column] = self._names[column][classes[part]].tolist()
        if "lemma" in words.tags:
            columns["lemma"] = [*map(self._lemma, form, columns["upos"], columns["lemma"])]
        deprel = self._names["deprel"][relations].tolist()
        return Annotation(form=form, head=head.tolist(), deprel=deprel, **columns)

    def _lemma(self, form: str, upos: str, script: str) -> str:
        known = self._labels.exceptions.get(form)
        if known is not None and upos in known:
            return known[upos]
        return apply_lemma_script(script, form)


def load_text_parser(model: ModelFile, identity: ParserIdentity, device: str) -> TextParser:  # noqa: ARG001 - it runs on the processor whatever is asked for
    parser = TextParser(model, identity)
    parser.parse(ParseInput("pretokenized", tokens=("a",)), Limits())
    return parser


def text_parser_version() -> str:
    return f"1, {onnx_version()}"


TEXT_PARSER: Final = Backend(
    FAMILY,
    find_text_parsers,
    text_parser_version,
    load_text_parser,
    options={"decoding": "mst"},
    bulk=True,
)


def _heads(words: WordStates, first: int, end: int) -> Ints:
    """Heads of the best tree of consecutive words; ROOT is the first row of all. *Shape:* (W,)."""
    heads = np.concatenate([words.arc_head[:1], words.arc_head[first:end]])
    return spanning_tree(words.arc_dependent[first:end] @ heads.T).astype(np.int64)
