"""Check that the character offsets of a tokenizer can be aligned with words.

Words and pieces are joined by the characters that both cover (`syntax.alignment`), so offsets must
lie in the text, come in order, and cover what the pieces show. Else features would be wrong in
silence: a pre-tokenizer that adds spaces, with a post-processor that trims them, cuts off a
character of each word; a BPE model that drops unknown characters counts on as if they had not been
there; old libraries give words of an `ignore_merges` vocabulary an empty span.

Allowed are: several pieces of one character (bytes), one piece for several words, an empty span for
white space alone, a leading space within the span, characters that the normalizer drops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_PROBES: Final = (
    "The 13 quick brown foxes (two of them) don't jump, do they?",
    "Zoë's naïve café: déjà vu - über Łódź, ¿señor?",
    "Мама мыла раму. שלום עולם! 我喜欢猫。ภาษาไทย",
)


def offsets_fault(backend: Any) -> str | None:
    for text in _PROBES:
        encoding = backend.encode(text, add_special_tokens=False)
        fault = _fault(backend, text, encoding.ids, encoding.offsets)
        if fault is not None:
            return f"{fault} in {text!r}"
    return None


def _fault(
    backend: Any, text: str, ids: Sequence[int], offsets: Sequence[tuple[int, int]]
) -> str | None:
    covered: set[int] = set()
    last = (0, 0)
    for piece, (start, end) in zip(ids, offsets, strict=True):
        span = f"the span of the piece {backend.id_to_token(piece)!r} is {start} to {end}"
        if not 0 <= start <= end <= len(text):
            return f"{span}, outside the text"
        if start == end:
            if any(map(str.isalnum, backend.decode([piece]))):
                return f"{span}, which is empty,"
            continue
        if start < last[0] or end < last[1]:
            return f"{span}, before that of the piece ahead of it,"
        last = start, end
        covered.update(range(start, end))
    shown = backend.decode(ids).casefold()
    for place, character in enumerate(text):
        if place not in covered and not character.isspace() and character.casefold() in shown:
            return f"no piece covers the character {place} ({character!r})"
    return None
