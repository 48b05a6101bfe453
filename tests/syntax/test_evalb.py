"""Bracketing as evalb counts it: cases counted by hand, and a slow twin on nested trees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.trees.constituents import read_trees
from syntax.trees.evalb import DELETED, QUOTES, BracketCounts, bracket_counts, evaluate
from tests.syntax.nested import Nested, flat, is_leaf, leaves, nested_trees, spans_of

GOLD = """
(TOP (S (NP (DT the) (NN man))
  (VP (VBD saw) (NP (DT a) (NN dog)) (PP (IN in) (NP (NN town)))) (. .)))
(S1 (S (NP (NP (DT the) (NN man))) (VP (VBD left) (PRT (RP out)))))
( (S (NP-SBJ (-NONE- *)) (VP (VB Go) (ADVP-DIR (RB home))) (. !)) )
(TOP (S (NP (PRP I)) (VP (VBP am))))
(TOP (NP (. .)))
(TOP (S (NP (NN a)) (, ,) (VP (VB b)) (. .)))
"""
SYSTEM = """
(TOP (S (NP (DT the) (NN man))
  (VP (VBD saw) (NP (NP (DT a) (NN dog)) (PP (IN in) (NP (NN town))))) (. .)))
(S (NP (DT the) (NNP man)) (VP (VBD left) (ADVP (RP out))))
(S (VP (VB Go) (ADVP (RB home))) (. !))
(S (NP (PRP You)) (VP (VBP are)))
(S (. .))
(S (S (NP (NN a) (, ,)) (VP (VB b) (. .))))
"""
BY_HAND = [
    # S NP VP NP PP NP; the system has one NP more, (a dog in town), which crosses nothing.
    BracketCounts(6, 7, 6, 6, 0, 7, 7),
    # S NP NP VP PRT; S NP VP ADVP: one of two equal NPs, and PRT is ADVP; a tag is wrong.
    BracketCounts(5, 4, 4, 4, 0, 4, 3),
    # S VP ADVP: the trace and its NP are gone, and `!` ends nothing; so all match.
    BracketCounts(3, 3, 3, 3, 0, 2, 2),
    "error",  # other words
    "skipped",  # nothing but punctuation
    # S NP VP; S S NP VP: punctuation does not move the ends.
    BracketCounts(3, 4, 3, 3, 0, 2, 2),
]


def test_cases_counted_by_hand() -> None:
    pairs = [*zip(read_trees(GOLD), read_trees(SYSTEM), strict=True)]
    assert [bracket_counts(*pair) for pair in pairs] == BY_HAND
    scores = evaluate(pairs)
    assert (scores.sentences, scores.errors, scores.skipped) == (6, 1, 1)
    # 16 of 17 gold constituents, 16 of 18 of the system.
    assert scores.recall == pytest.approx(94.12, abs=0.005)
    assert scores.precision == pytest.approx(88.89, abs=0.005)
    assert scores.f1 == pytest.approx(91.43, abs=0.005)
    assert (scores.complete_match, scores.no_crossing, scores.crossing) == (25.0, 100.0, 0.0)
    assert scores.tagging_accuracy == pytest.approx(100 * 14 / 15)


def test_crossing_is_counted_once_for_each_constituent_of_the_system() -> None:
    gold = read_trees("(S (A (X a) (X b)) (B (X c) (X d)) (C (X e) (X f)))")
    system = read_trees("(S (X a) (D (X b) (X c) (E (X d) (X e))) (X f))")
    # D (b to e) crosses A and C, E (d e) crosses B and C: two, not four.
    assert bracket_counts(gold[0], system[0]) == BracketCounts(4, 3, 1, 1, 2, 6, 6)
    scores = evaluate(zip(gold, system, strict=True))
    assert (scores.crossing, scores.no_crossing, scores.at_most_two_crossing) == (2.0, 0.0, 100.0)
    assert (scores.unlabelled_recall, scores.unlabelled_precision) == (25.0, pytest.approx(100 / 3))


def test_labels_do_not_matter_unlabelled() -> None:
    gold, system = (
        read_trees("(S (NP (X a) (X b)) (X c))"),
        read_trees("(S (VP (X a) (X b)) (X c))"),
    )
    scores = evaluate(zip(gold, system, strict=True))
    assert (scores.f1, scores.unlabelled_f1) == (50.0, 100.0)


def test_tags_of_punctuation_that_differ_are_an_error_as_in_evalb() -> None:
    gold, system = read_trees("(S (NN a) (. .))"), read_trees("(S (NN a) (SYM .))")
    assert bracket_counts(gold[0], system[0]) == "error"


@pytest.mark.parametrize("tag", sorted(QUOTES - DELETED))
def test_a_quotation_mark_that_counts_in_one_tree_counts_in_both(tag) -> None:
    """evalb's ``QUOTE_LABEL``; the constituent of a mark alone is one, too."""
    quoted = read_trees("(S (NP (`` \") (NN a) (Q ('' '))) (VP (VB b)) (. .))")
    told = read_trees(f"(S (NP ({tag} \") (NN a) (Q ({tag} '))) (VP (VB b)) (. .))")
    assert bracket_counts(quoted[0], told[0]) == BracketCounts(4, 4, 4, 4, 0, 4, 2)
    assert bracket_counts(told[0], quoted[0]) == BracketCounts(4, 4, 4, 4, 0, 4, 2)
    another = read_trees(f"(S (NP ({tag} x) (NN a) (Q ({tag} '))) (VP (VB b)) (. .))")
    assert bracket_counts(quoted[0], another[0]) == "error"


def test_nothing_scores_nothing() -> None:
    scores = evaluate([])
    assert (scores.f1, scores.complete_match, scores.crossing) == (0.0, 0.0, 0.0)


def without_deleted(tree: Nested) -> list[Nested]:
    """evalb's README, section 7, rule 1: what stands in the place of a tree."""
    if is_leaf(tree):
        return [] if tree[0] in DELETED else [tree]
    parts = [kept for part in tree[1:] for kept in without_deleted(part)]
    if tree[0] in DELETED or not parts:
        return parts
    return [[tree[0], *parts]]


def slow_counts(gold: Nested, system: Nested) -> BracketCounts | str:
    ours, theirs = (["", *without_deleted(tree)] for tree in (gold, system))
    if len(theirs) == 1:
        return "skipped"
    if len(ours) == 1 or [w for _, w in leaves(ours)] != [w for _, w in leaves(theirs)]:
        return "error"
    same = {"PRT": "ADVP"}
    right = sum(
        same.get(a, a) == same.get(b, b)
        for (a, _), (b, _) in zip(leaves(ours), leaves(theirs), strict=True)
    )
    first, second = (
        [(same.get(x, x), i, j) for x, i, j in spans_of(t)[1:]] for t in (ours, theirs)
    )

    def matched(labelled: bool) -> int:
        left, count = list(second), 0
        for one in first:
            for other in left:
                if one[1:] == other[1:] and (not labelled or one[0] == other[0]):
                    left.remove(other)
                    count += 1
                    break
        return count

    crossing = 0
    for _, i, j in second:
        inside = set(range(i, j))
        for _, k, m in first:
            other = set(range(k, m))
            if inside & other and inside - other and other - inside:
                crossing += 1
                break
    words = len(leaves(ours))
    return BracketCounts(
        len(first), len(second), matched(True), matched(False), crossing, words, right
    )


@given(nested_trees(), nested_trees(), st.booleans())
def test_counts_equal_those_of_the_slow_twin(gold: Nested, system: Nested, same: bool) -> None:
    if same:  # other brackets over the same words
        words = [word for _, word in leaves(gold)]
        system = with_words(system, words)
    assert bracket_counts(flat(gold), flat(system)) == slow_counts(gold, system)


def with_words(tree: Nested, words: list[str]) -> Nested:
    """The tree over these words; those that it has too few leaves for hang from its top."""
    left = list(words)

    def over(part: Nested) -> list[Nested]:
        if is_leaf(part):
            return [[part[0], left.pop(0)]] if left else []
        parts = [one for own in part[1:] for one in over(own)]
        return [[part[0], *parts]] if parts else []

    (made,) = over(tree)
    return [*made, *(["NN", word] for word in left)]
