"""Attachment scores, against the shared task's metrics and by counting."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.trees.scoring import evaluate
from syntax.trees.sentence import Sentence, Token, Word
from trainer.metrics.dependency import ParsedWord, attachment_scores, attachment_shares

RELATIONS = ("nsubj", "nsubj:pass", "obj", "punct", "case", "root", "det")
TAGS = ("NOUN", "VERB", "PUNCT", "SYM")


@st.composite
def analyses(draw: st.DrawFn) -> tuple[Sentence, Sentence]:
    """The same words with two trees, relations and tags."""
    size = draw(st.integers(1, 8))
    sides = []
    for _ in range(2):
        heads = [draw(st.integers(0, word)) if word else 0 for word in range(size)]
        heads = [0, *(min(max(head, 1), word) for word, head in enumerate(heads[1:], 1))]
        words = tuple(
            Word(
                word + 1,
                f"w{word}",
                upos=draw(st.sampled_from(TAGS)),
                head=head,
                deprel=draw(st.sampled_from(RELATIONS)),
            )
            for word, head in enumerate(heads)
        )
        sides.append(Sentence(words, tuple(Token(word.form, (word.id,)) for word in words)))
    return sides[0], sides[1]


def pairs(gold: Sentence, system: Sentence) -> list[ParsedWord]:
    return [
        ParsedWord(g.head - 1, s.head - 1, g.deprel, s.deprel, g.upos, s.upos)
        for g, s in zip(gold.words, system.words, strict=True)
    ]


@given(st.lists(analyses(), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_attachment_is_that_of_the_shared_task(treebank) -> None:
    expected = evaluate((gold for gold, _ in treebank), (system for _, system in treebank))
    scores = attachment_scores(
        [attachment_shares(pairs(*one), tagged=True) for one in treebank], 0.0
    )
    assert 100 * scores.uas == pytest.approx(expected["UAS"].f1)
    assert 100 * scores.las == pytest.approx(expected["LAS"].f1)
    assert 100 * scores.upos == pytest.approx(expected["UPOS"].f1)
    assert scores.words == expected["Words"].gold


@given(st.lists(analyses(), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_other_scores_equal_their_definitions(treebank) -> None:
    words = [word for one in treebank for word in pairs(*one)]
    scores = attachment_scores([attachment_shares(pairs(*one)) for one in treebank], 0.0)

    def universal(relation: str) -> str:
        return relation.split(":")[0]

    function = {"aux", "case", "cc", "clf", "cop", "det", "mark", "punct"}
    gold = [w for w in words if universal(w.gold_relation) not in function]
    system = [w for w in words if universal(w.relation) not in function]
    right = [
        w
        for w in gold
        if w.head == w.gold_head and universal(w.relation) == universal(w.gold_relation)
    ]
    f1 = 2 * len(right) / (len(gold) + len(system)) if gold or system else 0.0
    assert scores.clas == pytest.approx(f1)
    plain = [w for w in words if w.gold_upos not in ("PUNCT", "SYM")]
    exact = [w for w in plain if (w.head, w.relation) == (w.gold_head, w.gold_relation)]
    share = len(exact) / len(plain) if plain else 0.0
    assert scores.las_no_punct_subtypes == pytest.approx(share)


@given(analyses())
@settings(max_examples=50, deadline=None)
def test_subtypes_and_cuts_can_only_lower_scores(pair) -> None:
    words = pairs(*pair)
    shares = [attachment_shares(words)]
    scores = attachment_scores(shares, 0.0)
    assert scores.las_subtypes <= scores.las <= scores.uas
    cut = [replace(words[0], head=-2, relation=None), *words[1:]]
    worse = attachment_scores([attachment_shares(cut)], 0.0)
    assert worse.words == scores.words
    assert worse.uas <= scores.uas


def test_an_example_without_any_tag_is_wrong_for_a_tagger() -> None:
    words = (
        ParsedWord(-1, -1, "root", "root", "NOUN", "NOUN"),
        ParsedWord(-1, -2, "root", None, "NOUN", None),  # truncation cut it
    )
    shares = [attachment_shares([word], tagged=True) for word in words]
    assert [one["upos"] for one in shares] == [(1, 1), (0, 1)]
    assert attachment_scores(shares, 0.0).upos == 0.5


def test_a_model_without_tags_has_no_score_of_them() -> None:
    word = ParsedWord(-1, -1, "root", "root", "VERB")
    shares = attachment_shares([word])
    assert "upos" not in shares
    assert attachment_scores([shares], 0.5).upos is None
    assert attachment_scores([], 0.0).las == 0.0
