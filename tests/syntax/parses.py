"""Random trees, and parses of words that cover given spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from syntax import Parse


@st.composite
def tree_heads(draw: st.DrawFn, least: int = 1, most: int = 12) -> list[int]:
    """Heads of a random tree, projective or not: each word hangs from one drawn before it."""
    order = draw(st.permutations(range(1, draw(st.integers(least, most)) + 1)))
    heads = [0] * len(order)
    for at, word in enumerate(order[1:], 1):
        heads[word - 1] = order[draw(st.integers(0, at - 1))]
    return heads


def parse_of(
    text: str, spans: Sequence[tuple[int, int]], trees: Sequence[list[int]], **columns: Any
) -> Parse:
    """Words that cover these spans, in sentences by their heads; words of one span are a token."""
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    tokens = [at for at, span in enumerate(spans) if at == 0 or span != spans[at - 1]]
    firsts = [sum(map(len, trees[:at])) for at in range(len(trees) + 1)]
    none: list[str | None] = [None] * len(spans)
    return Parse(
        text=text,
        form=[text[start:end] for start, end in spans],
        head=[head for tree in trees for head in tree],
        **dict.fromkeys(("lemma", "upos", "xpos", "feats", "deprel"), none) | columns,
        word_start=starts,
        word_end=ends,
        token_start=[starts[at] for at in tokens],
        token_end=[ends[at] for at in tokens],
        token_first_word=tokens,
        sentence_start=[starts[first] for first in firsts[:-1]],
        sentence_end=[ends[behind - 1] for behind in firsts[1:]],
        sentence_first_word=firsts[:-1],
    )
