"""Copies of UDPipe's sentences.

UDPipe's word objects point into their sentence and silently change when it is freed, so
everything is copied while the caller still holds the sentence.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from service.parsers.columns import Annotation
from service.parsers.surface import Surface

_ATTRIBUTES: Final = attrgetter("form", "lemma", "upostag", "xpostag", "feats", "head", "deprel")


def surface_of(sentence: Any, shift: int = 0) -> Surface:
    """Tokens from ranges, which are on multiword tokens and words, not on words inside one."""
    words, tokens, counts, at = list(sentence.words)[1:], [], [], 0
    for token in sentence.multiwordTokens:
        first = token.idFirst - 1
        tokens += [*words[at:first], token]
        counts += [1] * (first - at) + [token.idLast - first]
        at = token.idLast
    tokens += words[at:]
    counts += [1] * (len(words) - at)
    starts = [token.getTokenRangeStart() + shift for token in tokens]
    return Surface(starts, [token.getTokenRangeEnd() + shift for token in tokens], counts)


def forms_of(sentence: Any) -> list[str]:
    return [word.form for word in list(sentence.words)[1:]]


def annotation_of(sentence: Any) -> Annotation:
    # A call for each column would look every attribute's getter up again for each word.
    words = map(_ATTRIBUTES, list(sentence.words)[1:])
    return Annotation(*zip(*words, strict=True))
