"""Lemmas that scripts of edits miss, looked up as by Stanza (Qi et al. 2020, section 2.1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from service.parsers.base import Parser
from service.training.evaluation import parsed_words
from syntax import Sentence


def lemma_exceptions(parser: Parser, sentences: Sequence[Sentence]) -> dict[str, dict[str, str]]:
    """Commonest lemma of each form, by UPOS, where the parser is right less often than it."""
    lemmas: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    right = Counter[tuple[str, str]]()
    for sentence, parse in zip(sentences, parsed_words(parser, sentences), strict=True):
        for word, lemma in zip(sentence.words, parse.lemma, strict=True):
            if word.lemma is not None and word.upos is not None:
                pair = word.form, word.upos
                lemmas[pair][word.lemma] += 1
                right[pair] += lemma == word.lemma
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for (form, upos), seen in sorted(lemmas.items()):
        lemma, times = min(seen.items(), key=lambda one: (-one[1], one[0]))
        if right[form, upos] < times:
            found[form][upos] = lemma
    return dict(found)
