import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.reproduction import released_rules as rules
from trainer.reproduction.rows.released_counts import token_spans
from trainer.reproduction.rows.releases import LOSSES, Counts

TREES = st.integers(1, 12).flatmap(
    lambda size: st.permutations(range(1, size + 1)).flatmap(
        lambda order: st.tuples(st.just(order), st.lists(st.integers(0, 99), min_size=size))
    )
)


def heads_from(order: list[int], draws: list[int]) -> list[int]:
    """A random tree: each word hangs from one before it in a random order."""
    heads = [0] * len(order)
    for place, word in enumerate(order[1:], 1):
        heads[word - 1] = order[draws[place] % place]
    return heads


@given(st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=("Cs",))))
def test_a_field_is_what_a_csv_reader_reads_back(text: str) -> None:
    written = rules.written_by_csv(text)
    (row,) = csv.reader(io.StringIO(written + "\tx"), delimiter="\t")
    assert row == [text, "x"]
    assert (written != text) == ('"' in text or "\t" in text)


@pytest.mark.parametrize(
    ("word", "token"),
    [((0, 2), 0), ((0, 1), 0), ((3, 8), 1), ((4, 6), 1), ((1, 6), 1), ((1, 4), None)],
)
def test_a_word_is_lost_if_it_shares_no_edge_with_a_token(
    word: rules.Span, token: int | None
) -> None:
    assert token_spans(["du", "cha"]) == [(0, 2), (3, 6)]
    assert rules.token_of(word, token_spans(["du", "cha"])) == token


@pytest.mark.parametrize(
    ("passage", "answer", "found"),
    [
        ("the cat  sat", "cat  sat", True),
        ("the (cat) sat", "cat", True),
        ("in 5\u00a0km of", "5\u00a0km", False),
        ("in 5\u202fkm of", "5\u202fkm", True),
    ],
)
def test_an_answer_is_lost_if_its_white_space_is_not_that_of_the_words(
    passage: str, answer: str, found: bool
) -> None:
    assert rules.answer_is_found(passage, passage.index(answer), answer) is found


def subtree(heads: list[int], top: int) -> set[int]:
    found = {top}
    while more := {n for n, head in enumerate(heads, 1) if head in found} - found:
        found |= more
    return found


@given(TREES)
def test_spans_are_wide_where_a_subtree_has_a_gap(drawn: tuple[list[int], list[int]]) -> None:
    heads = heads_from(*drawn)
    subtrees = [subtree(heads, word) for word in range(1, len(heads) + 1)]
    gaps = [max(one) - min(one) + 1 > len(one) for one in subtrees]
    assert rules.has_wide_span(heads) == any(gaps)


def test_words_of_one_piece_without_dependents_do_not_see_themselves() -> None:
    heads = [2, 0, 2, 3]
    assert rules.words_without_themselves(heads, [1, 1, 1, 1]) == 2
    assert rules.words_without_themselves(heads, [1, 1, 1, 3]) == 1


def test_pieces_without_continuation_marks_count_as_words() -> None:
    assert rules.rows_by_continuation(["do", "##gs", "don", "'", "t"]) == 4


def test_what_became_of_examples_is_added_over_parts() -> None:
    jobs = [
        {"examples": 5, "stored": 3, "already_stored": 0, "dropped": {"empty_text": 1}},
        {"examples": 4, "stored": 1, "already_stored": 1, "dropped": {"empty_text": 1, "label": 1}},
    ]
    assert Counts.of_jobs(jobs) == Counts(9, 5, {"empty_text": 2, "label": 1})
    assert Counts.of_jobs(jobs).unaccounted == 1


def test_every_rule_names_a_release_and_its_commit() -> None:
    assert len({loss.count for loss in LOSSES}) == len(LOSSES)
    assert all(loss.release.endswith(")") and loss.does and loss.ours for loss in LOSSES)
