"""Copy what UDPipe says about a sentence.

UDPipe's word objects point into their sentence and silently change when it is freed, so
everything is copied while the caller still holds the sentence.
"""

from __future__ import annotations

from typing import Any

from service.parsers.columns import Annotation
from service.parsers.surface import Surface


def surface_of(sentence: Any, shift: int = 0) -> Surface:
    """The tokens of a sentence that carries ranges; ``shift`` is added to them.

    Ranges sit on multiword tokens and on single words, never on words inside a token.
    """
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
    """The forms of a sentence's words."""
    return [word.form for word in list(sentence.words)[1:]]


def annotation_of(sentence: Any) -> Annotation:
    """The annotation of a sentence's words."""
    words = list(sentence.words)[1:]
    return Annotation(
        form=[word.form for word in words],
        lemma=[word.lemma for word in words],
        upos=[word.upostag for word in words],
        xpos=[word.xpostag for word in words],
        feats=[word.feats for word in words],
        head=[word.head for word in words],
        deprel=[word.deprel for word in words],
    )
