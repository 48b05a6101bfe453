"""Parses as the arguments of spaCy's and Stanza's documents; nothing here imports either."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from syntax.trees.parse import WORD_COLUMNS, Parse


def spacy_columns(parse: Parse) -> dict[str, Any]:
    """Arguments of ``spacy.tokens.Doc`` after its vocabulary.

    spaCy has no multiword tokens and knows one space after a token, so the tokens of the document
    are the *words* of the parse. Words that do not spell their token (*de* *le* for *du*) stand
    apart, and the text of the document differs there. ``user_data`` keeps what would be lost:
    ``text``, and ``multiword_tokens``, the first word, end and form of each.

    Heads count words from 0 through the text; a root is its own head, with the label ``ROOT``.
    Of *du chat*, the words are ``["de", "le", "chat"]``, the heads ``[2, 2, 2]``.
    """
    heads = parse.parents().tolist()
    starts = [False] * parse.word_count
    for first in parse.sentence_first_word:
        starts[first] = True
    multiword = [
        [first, end, parse.text[start:stop]]
        for (first, end), start, stop in zip(
            parse.token_ranges(), parse.token_start, parse.token_end, strict=True
        )
        if end - first > 1
    ]
    return {
        "words": list(parse.form),
        "spaces": _spaces(parse),
        "lemmas": [value or "" for value in parse.lemma],
        "pos": [value or "" for value in parse.upos],
        "tags": [value or "" for value in parse.xpos],
        "morphs": [value or "" for value in parse.feats],
        "heads": [at if head < 0 else head for at, head in enumerate(heads)],
        "deps": [
            "ROOT" if head < 0 else value or ""
            for head, value in zip(heads, parse.deprel, strict=True)
        ],
        "user_data": {"text": parse.text, "multiword_tokens": multiword},
    }


def _spaces(parse: Parse) -> list[bool]:
    """True where something stands between a word and the next one."""
    spans = zip(parse.word_start, parse.word_end, strict=True)
    apart = [
        end < start or (before, end) == (start, stop)
        for (before, end), (start, stop) in pairwise(spans)
    ]
    return [*apart, False]


def stanza_sentences(parse: Parse) -> list[list[dict[str, Any]]]:
    """Sentences of ``stanza.Document(sentences, text=parse.text)``; unknown columns are left out.

    Multiword tokens are entries of their own before their words, as in CoNLL-U. All have
    characters, except words that do not spell their token.
    """
    ranges = parse.token_ranges()
    spans = list(zip(parse.token_start, parse.token_end, strict=True))
    sentences: list[list[dict[str, Any]]] = []
    at = 0
    for first, end in parse.word_ranges():
        entries: list[dict[str, Any]] = []
        while at < len(ranges) and ranges[at][0] < end:
            words, span = ranges[at], spans[at]
            if words[1] - words[0] > 1:
                ids = (words[0] - first + 1, words[1] - first)
                entries.append({"id": ids, "text": parse.text[slice(*span)], **_place(*span)})
            entries += [_stanza_word(parse, word, first, words, span) for word in range(*words)]
            at += 1
        sentences.append(entries)
    return sentences


def _stanza_word(
    parse: Parse, at: int, first: int, token: tuple[int, int], span: tuple[int, int]
) -> dict[str, Any]:
    own = parse.word_start[at], parse.word_end[at]
    word: dict[str, Any] = {"id": at - first + 1, "text": parse.form[at]}
    for name in WORD_COLUMNS[1:]:
        if (value := getattr(parse, name)[at]) is not None:
            word[name] = value
    has_place = token[1] - token[0] == 1 or own != span
    return word | _place(*own) if has_place else word


def _place(start: int, end: int) -> dict[str, int]:
    return {"start_char": start, "end_char": end}
