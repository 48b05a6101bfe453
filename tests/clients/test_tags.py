"""Schemes of tags become BIO, checked against mentions found the slow way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks.tags import check_tokens, is_tag, tag_names, to_bio
from syntax.errors import EmptyTokenError, LabelError

Mention = tuple[int, int, str]


def mentions_slowly(tags: list[str]) -> list[Mention]:
    """Where each mention begins and ends, by the rules of conlleval, one pair at a time."""
    found: list[Mention] = []
    start = 0
    for at, tag in enumerate([*tags, "O"]):
        before = tags[at - 1] if at else "O"
        ends = before != "O" and (
            before[0] in "LEUS" or tag == "O" or tag[0] in "BUS" or tag[2:] != before[2:]
        )
        begins = tag != "O" and (before == "O" or ends)
        if ends:
            found.append((start, at, before[2:]))
        if begins:
            start = at
    return found


def written(mentions: list[Mention], length: int, scheme: str) -> list[str]:
    """Tags of mentions in a scheme."""
    tags = ["O"] * length
    for start, end, name in mentions:
        for at in range(start, end):
            tags[at] = f"{_prefix(at, start, end, tags, name, scheme)}-{name}"
    return tags


def _prefix(at: int, start: int, end: int, tags: list[str], name: str, scheme: str) -> str:
    if scheme == "IOB1":
        touches = at == start and at > 0 and tags[at - 1][2:] == name
        return "B" if touches else "I"
    first, last = at == start, at == end - 1
    single, final = {"BIO": "BI", "IOBES": "SE", "BILOU": "UL"}[scheme]
    if first:
        return single if last else "B"
    return final if last else "I"


@st.composite
def spans(draw: st.DrawFn) -> tuple[list[Mention], int]:
    lengths = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=6))
    mentions, at = [], 0
    for gap, size in lengths:
        start = at + gap
        mentions.append((start, start + size, draw(st.sampled_from(["X", "Y", "a.b-c"]))))
        at = start + size
    return mentions, at + draw(st.integers(0, 2))


@given(spans(), st.sampled_from(["IOB1", "BIO", "IOBES", "BILOU"]))
def test_every_scheme_becomes_the_same_bio(case: tuple[list[Mention], int], scheme: str) -> None:
    mentions, length = case
    assert list(to_bio(written(mentions, length, scheme))) == written(mentions, length, "BIO")


NAMED = st.tuples(st.sampled_from("BILEUS"), st.sampled_from("XY")).map("-".join)
ANY_TAG = st.one_of(st.just("O"), NAMED)


@given(st.lists(ANY_TAG, max_size=12))
def test_broken_schemes_keep_the_mentions_of_the_slow_twin(tags: list[str]) -> None:
    mentions = mentions_slowly(tags)
    assert list(to_bio(tags)) == written(mentions, len(tags), "BIO")
    assert mentions_slowly(list(to_bio(tags))) == mentions


@given(st.lists(ANY_TAG, max_size=12))
def test_bio_stays_bio(tags: list[str]) -> None:
    assert to_bio(to_bio(tags)) == to_bio(tags)


@pytest.mark.parametrize("tag", ["", "B", "B-", "X-PER", "PER", "o", "O ", "B-a b"])
def test_unknown_tag_scheme_is_refused(tag: str) -> None:
    assert not is_tag(tag)
    with pytest.raises(LabelError, match="is no tag; expected O, or a type after one of"):
        to_bio(["O", tag])


@given(st.lists(ANY_TAG, max_size=12), st.randoms())
def test_names_do_not_depend_on_order(tags: list[str], random) -> None:
    mixed = list(tags)
    random.shuffle(mixed)
    names = tag_names(mixed)
    assert names == tag_names(tags)
    assert set(to_bio(tags)) <= set(names)
    assert names[0] == "O"
    assert len(set(names)) == len(names)


def test_names_are_sorted_by_type_then_b_before_i() -> None:
    assert tag_names(["I-b", "O", "U-a", "B-b"]) == ("O", "B-a", "I-a", "B-b", "I-b")
    assert tag_names([]) == ("O",)


@pytest.mark.parametrize("token", ["", " ", "\u00a0", "\u3000", "\x85"])
def test_empty_token_is_an_empty_token_error(token: str) -> None:
    with pytest.raises(EmptyTokenError, match="here: token 1 is empty or white space"):
        check_tokens(["a", token], ["O", "O"], "here")


@pytest.mark.parametrize("mark", ["\u200b", "\u200e", "\u200f", "\ufeff", "\u00ad"])
def test_a_zero_width_mark_is_a_token(mark: str) -> None:
    check_tokens([mark], ["O"], "here")


def test_tags_must_be_as_many_as_tokens() -> None:
    with pytest.raises(LabelError, match="here: 2 tokens and 1 tags"):
        check_tokens(["a", "b"], ["O"], "here")
