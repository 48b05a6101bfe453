"""The text and the sentences of a web page."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks.web_pages import FULL_STOPS, page_text, sentences


@pytest.mark.parametrize(
    ("html", "lines"),
    [
        ("one <b>two</b><i>three</i>", ["one twothree"]),
        ("one<p>two</p>three", ["one", "two", "three"]),
        ("<P>one<figure><caption>two</caption></figure>three", ["one", "two", "three"]),
        ("<text>one<p/>two</text>", ["one", "two"]),
        ("R&amp;D &lt;p&gt; &#233;&nbsp;&eacute;", ["R&D <p> é\xa0é"]),
        ("&amp;lt; is written once", ["&lt; is written once"]),
        ("one<!-- <p> -->two\rthree\r\nfour", ["onetwo", "three", "four"]),
        ("2 < 3", ["2 < 3"]),
        ("", []),
    ],
)
def test_only_four_elements_break_lines(html, lines):
    found = [line.strip() for line in page_text(html).split("\n")]
    assert [line for line in found if line] == lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two", ["One.", "Two"]),
        ("One.Two", ["One.", "Two"]),
        ('One?!" (Two...)', ['One?!"', "(Two...)"]),
        ("Wait... , what", ["Wait...", ", what"]),
        ("3.5", ["3.", "5"]),
        ("One\nTwo.\n\n Three ", ["One", "Two.", "Three"]),
        ("One।Two", ["One।", "Two"]),
        (". .", [".", "."]),
        (" \n ", []),
    ],
)
def test_a_sentence_ends_behind_its_full_stops_and_punctuation(text, expected):
    assert list(sentences(text)) == expected


def character_by_character(text: str) -> list[str]:
    """The recipe as its authors state it: one pass over the characters."""
    found, current, stopped = [], "", False
    for character in text:
        stop, punctuation = character in FULL_STOPS, category(character)[0] == "P"
        if character == "\n" or (stopped and not stop and not punctuation):
            found.append(current)
            current, stopped = "", False
        elif stop:
            stopped = True
        current += character
    return [sentence.strip() for sentence in [*found, current] if sentence.strip()]


@given(st.text(alphabet=" \nab.!?\"')(,।…¿\u2028\x1f", max_size=30))
def test_sentences_are_those_of_the_slow_twin(text):
    assert list(sentences(text)) == character_by_character(text)


def test_the_full_stops_are_those_of_the_sentencizer():
    assert len(set(FULL_STOPS)) == len(FULL_STOPS) == 128
    assert {"!", ".", "?", "؟", "۔", "。"} <= set(FULL_STOPS)
    assert not {"…", ";", ":", "\n"} & set(FULL_STOPS)
