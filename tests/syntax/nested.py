"""Constituent trees as nested lists, for slow twins: a label, then parts; or a tag and a word."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from syntax.trees.constituents import Constituent, ConstituentTree

Nested = list[Any]

LABELS = ("S", "NP", "VP", "PRT", "ADVP", "TOP")
TAGS = ("NN", "VB", ",", ".", "PRT")


def nested_trees(words: str = "ab", most: int = 8) -> st.SearchStrategy[Nested]:
    """Trees with unary chains, repeated labels, and punctuation."""
    leaf = st.tuples(st.sampled_from(TAGS), st.sampled_from(words)).map(list)

    def above(parts: st.SearchStrategy[Nested]) -> st.SearchStrategy[Nested]:
        several = st.lists(parts, min_size=1, max_size=4)
        return st.tuples(st.sampled_from(LABELS), several).map(lambda one: [one[0], *one[1]])

    inner = st.recursive(leaf, above, max_leaves=most)
    return st.lists(inner, min_size=1, max_size=3).map(lambda parts: ["S", *parts])


def is_leaf(tree: Nested) -> bool:
    return isinstance(tree[1], str)


def leaves(tree: Nested) -> list[tuple[str, str]]:
    if is_leaf(tree):
        return [(tree[0], tree[1])]
    return [leaf for part in tree[1:] for leaf in leaves(part)]


def spans_of(tree: Nested, start: int = 0) -> list[tuple[str, int, int]]:
    """Label, first word and end of each constituent, the outer before the inner."""
    if is_leaf(tree):
        return []
    found = [(tree[0], start, start + len(leaves(tree)))]
    for part in tree[1:]:
        found += spans_of(part, start)
        start += len(leaves(part))
    return found


def bracketed(tree: Nested) -> str:
    return f"({tree[0]} {' '.join(x if isinstance(x, str) else bracketed(x) for x in tree[1:])})"


def flat(tree: Nested) -> ConstituentTree:
    tags, words = zip(*leaves(tree), strict=True)
    return ConstituentTree(words, tags, tuple(Constituent(*one) for one in spans_of(tree)))
