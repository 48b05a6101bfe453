"""Words of a batch as a parser reads and learns them, as NumPy arrays; without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.batches.labels import IGNORE
from syntax.batches.words import WordLayout, tree_heads, word_values
from syntax.trees.ud import UPOS
from syntax.variant import Variant, is_released
from trainer.options.parser import ParserOptions, Trees

WORDS: Final = ("parser_pieces", "parser_sources", "parser_sentences", "parser_tags")
CHARS: Final = "parser_chars"
"""Ids of the characters of each word, where a parser reads them."""

FORMS: Final = "parser_forms"
"""Ids of the words themselves, where a parser reads them; 0 for an unknown one."""

LONGEST: Final = 20
"""Most characters of a word that are read, from the first, as in supar."""

TREES: Final = ("parser_heads", "parser_relations", "parser_upos")


def parser_targets(
    options: ParserOptions,
    arrays: Mapping[str, Any],
    trees: Trees = "gold",
    rows: Variant = "as_published",
) -> dict[str, NDArray[Any]]:
    """The words of a batch, and what their trees teach: `WORDS`, `TREES`, and what else is read.

    Heads are as `syntax.batches.words.tree_heads` gives them, relations places in
    ``options.relations``, universal tags ids of `syntax.trees.ud`; -100 for what is not learned,
    which is all of a batch without parses.

    MicroBERT's code drops the last column of a batch in place of each sentence's [SEP]. So with
    ``rows="as_released"`` [SEP] is one word more in all but the longest sentences, with ROOT as
    head, and the first relation and tag. Its state is its own, or zeros where the sequence is the
    longest of the batch.
    """
    layout: WordLayout = arrays["word_layout"]
    nothing = np.full(layout.words.shape, IGNORE, np.int64)
    found = {
        "parser_pieces": layout.pieces,
        "parser_sources": layout.sources,
        "parser_sentences": layout.sentences,
        "parser_tags": np.zeros_like(nothing),
        **dict.fromkeys(TREES, nothing),
    }
    if options.char_width:
        found[CHARS] = _characters(arrays, options.chars)
    if options.word_width:
        found[FORMS] = np.zeros_like(nothing)
    if "parses" in arrays:
        found["parser_tags"] = np.maximum(column_ids(arrays, options.tag, options.tags) + 1, 0)
        if options.word_width:
            found[FORMS] = _form_ids(arrays, options.words)
        heads = tree_heads(layout, arrays["parses"])
        heads[~learned_rows(arrays, trees)] = IGNORE
        relations = column_ids(arrays, "deprel", options.relations)
        upos = column_ids(arrays, "upos", UPOS[1:]) + 1
        found["parser_heads"] = heads
        found["parser_relations"] = np.where(heads == IGNORE, IGNORE, relations)
        found["parser_upos"] = np.where((heads == IGNORE) | (upos < 0), IGNORE, upos)
    return _with_separators(found, arrays, layout) if is_released(rows) else found


def further_words(options: ParserOptions) -> dict[str, str]:
    """Arrays that a parser reads beside `WORDS`, by their field of `trainer.nn.parser.Words`."""
    found = {"chars": CHARS} if options.char_width else {}
    return {**found, "forms": FORMS} if options.word_width else found


def learned_rows(arrays: Mapping[str, Any], trees: Trees) -> NDArray[np.bool_]:
    """Sequences whose trees count. *Shape:* (B,)."""
    gold: NDArray[np.bool_] = np.asarray(arrays["is_gold"], bool)
    return gold if trees == "gold" else np.ones(len(gold), bool)


def column_ids(arrays: Mapping[str, Any], column: str, names: Sequence[str]) -> NDArray[np.int64]:
    """Places of the words' values among ``names``, int64 (B, W); -100 for another, or no word."""
    places = {name: place for place, name in enumerate(names)}
    values = [
        [[places.get(value, IGNORE) for value in getattr(one, column)] for one in own]
        for own in arrays["parses"]
    ]
    return word_values(arrays["word_layout"], values)


def _form_ids(arrays: Mapping[str, Any], words: Sequence[str]) -> NDArray[np.int64]:
    places = {word: place for place, word in enumerate(words, start=1)}
    values = [
        [[places.get(form.lower(), 0) for form in one.form] for one in own]
        for own in arrays["parses"]
    ]
    return np.maximum(word_values(arrays["word_layout"], values), 0)


def _characters(arrays: Mapping[str, Any], chars: Sequence[str]) -> NDArray[np.int64]:
    """Ids of each word's characters, 1 for an unknown one, then 0. *Shape:* (B, W, C), int64."""
    layout: WordLayout = arrays["word_layout"]
    places, forms = {char: place for place, char in enumerate(chars, start=2)}, dict[str, int]()
    values = [
        [[forms.setdefault(form, len(forms) + 1) for form in one.form] for one in own]
        for own in arrays.get("parses", [])
    ]
    found = np.zeros((len(forms) + 1, LONGEST), np.int64)
    for form, row in forms.items():
        ids = [places.get(char, 1) for char in form[:LONGEST]]
        found[row, : len(ids)] = ids
    if not values:
        return found[np.zeros(layout.words.shape, np.int64)]
    return found[np.maximum(word_values(layout, values), 0)]


def _with_separators(
    found: dict[str, NDArray[Any]], arrays: Mapping[str, Any], layout: WordLayout
) -> dict[str, NDArray[Any]]:
    """The words with the last special token of each sequence that has fewer than the most."""
    found = {name: array.copy() for name, array in found.items()}
    longest, positions = layout.words.shape[1], arrays["word_ids"].shape[1]
    for row, count in enumerate(layout.counts.tolist()):
        if not 0 < count < longest:
            continue
        end = int(arrays["lengths"][row])
        if end < positions:
            found["parser_pieces"][row, end - 1] = count
        found["parser_sources"][row, count] = count
        found["parser_sentences"][row, count] = layout.sentences[row, count - 1]
        found["parser_tags"][row, count] = min(1, int(found["parser_tags"].max(initial=0)))
        if found["parser_heads"][row, count - 1] != IGNORE:
            found["parser_heads"][row, count] = found["parser_relations"][row, count] = 0
    return found
