"""The CoNLL 2018 metrics: cases counted by hand, properties, and figures known from real files."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import Sentence, Token, Word, read_conllu
from syntax.trees.scoring import METRICS, Score, TextMismatchError, evaluate


def sentence(*rows: tuple[str, str, int, str]) -> Sentence:
    """A sentence of (form, upos, head, deprel), each word a token of its own."""
    words = tuple(
        Word(at, form, upos=upos, head=head, deprel=deprel)
        for at, (form, upos, head, deprel) in enumerate(rows, 1)
    )
    return Sentence(words, tuple(Token(word.form, (word.id,)) for word in words))


def fused(given: Sentence, surface: str, first: int, last: int) -> Sentence:
    """The same words, those from *first* to *last* in one multiword token."""
    before = given.tokens[: first - 1]
    token = Token(surface, tuple(range(first, last + 1)), span_line=first == last)
    return replace(given, tokens=(*before, token, *given.tokens[last:]))


DOGS = sentence(
    ("Dogs", "NOUN", 2, "nsubj"),
    ("bark", "VERB", 0, "root"),
    ("loudly", "ADV", 2, "advmod"),
    (".", "PUNCT", 2, "punct"),
)
RAIN = sentence(("It", "PRON", 2, "nsubj"), ("rains", "VERB", 0, "root"))


def counts(score: Score) -> tuple[int, int, int]:
    return score.gold, score.system, score.correct


def change(given: Sentence, word_id: int, **columns: object) -> Sentence:
    words = tuple(
        replace(word, **columns) if word.id == word_id else word  # type: ignore[arg-type]
        for word in given.words
    )
    return replace(given, words=words)


CANT = sentence(
    ("They", "PRON", 4, "nsubj"),
    ("ca", "AUX", 4, "aux"),
    ("n't", "PART", 4, "advmod"),
    ("swim", "VERB", 0, "root"),
)
CANT_OF_ONE_WORD = sentence(
    ("They", "PRON", 3, "nsubj"), ("N'T", "PART", 3, "advmod"), ("swim", "VERB", 0, "root")
)
CANT_WHOLE = sentence(
    ("They", "PRON", 3, "nsubj"), ("can't", "AUX", 3, "aux"), ("swim", "VERB", 0, "root")
)
SPLIT = sentence(
    ("Dogs", "NOUN", 2, "nsubj"),
    ("ba", "VERB", 0, "root"),
    ("rk", "VERB", 2, "dep"),
    ("loudly", "ADV", 2, "advmod"),
    (".", "PUNCT", 2, "punct"),
)
JOINED = sentence(
    ("Dogs", "NOUN", 2, "nsubj"),
    ("bark", "VERB", 0, "root"),
    ("loudly", "ADV", 2, "advmod"),
    (".", "PUNCT", 2, "punct"),
    ("It", "PRON", 6, "nsubj"),
    ("rains", "VERB", 2, "parataxis"),
)
TAGGED = change(DOGS, 1, lemma="dog", xpos="NNS", feats="Number=Plur|Typo=Yes")
UNIVERSAL = change(TAGGED, 1, lemma="dogs", feats="Number=Plur")
MISTAGGED = change(DOGS, 1, upos="VERB", lemma="dogs", xpos="NN", feats="Number=Sing")
RELABELLED = change(change(DOGS, 3, deprel="obl"), 1, deprel="nsubj:pass")
TURNED = change(change(RAIN, 1, head=0, deprel="root"), 2, head=1, deprel="dep")
HEADLESS = change(change(RAIN, 1, head=None, deprel=None), 2, head=None, deprel=None)
ABC, ABCD, A_BC_D = (
    sentence((one, "X", 0, "root"), (two, "X", 1, "dep"), (three, "X", 1, "dep"))
    for one, two, three in (("a", "b", "c"), ("a", "b", "cd"), ("a", "bc", "d"))
)
NEW_YORK, NEWYORK = (sentence((form, "PROPN", 0, "root")) for form in ("New York", "NewYork"))
APART = sentence(("New", "PROPN", 0, "root"), ("York", "PROPN", 1, "flat"))

ALL_RIGHT = (4, 4, 4)
ONE_WRONG = (4, 4, 3)
WRONG_TAGS = dict.fromkeys(("UPOS", "XPOS", "UFeats", "Lemmas", "AllTags"), ONE_WRONG)


@pytest.mark.parametrize(
    ("gold", "system", "expected"),
    [
        pytest.param(gold, system, expected, id=what)
        for what, gold, system, expected in (
            ("a wrong head", DOGS, change(DOGS, 3, head=1), {"UAS": ONE_WRONG, "LAS": ONE_WRONG}),
            ("a wrong head is no tag", DOGS, change(DOGS, 3, head=1), {"UPOS": ALL_RIGHT}),
            ("a subtype costs nothing", DOGS, RELABELLED, {"UAS": ALL_RIGHT, "LAS": ONE_WRONG}),
            ("each annotation has its metric", TAGGED, MISTAGGED, WRONG_TAGS),
            *(
                ("tags count together", TAGGED, change(TAGGED, 1, **wrong), {"AllTags": ONE_WRONG})
                for wrong in ({"upos": "VERB"}, {"xpos": "NN"}, {"feats": "Number=Sing"})
            ),
            ("a lemma is no tag", TAGGED, UNIVERSAL, {"AllTags": ALL_RIGHT, "Lemmas": ONE_WRONG}),
            (
                "features that are not universal, and their order, do not count",
                change(DOGS, 2, feats="Mood=Ind|Tense=Pres"),
                change(DOGS, 2, feats="Tense=Pres|Mood=Ind|Typo=Yes"),
                {"UFeats": ALL_RIGHT},
            ),
            ("an empty gold lemma matches any", DOGS, TAGGED, {"Lemmas": ALL_RIGHT}),
            ("an empty lemma is wrong", TAGGED, DOGS, {"Lemmas": ONE_WRONG}),
            # Three words are aligned, but the head of each is not.
            (
                "a split word and its dependents are wrong",
                *(DOGS, SPLIT),
                {**dict.fromkeys(("Tokens", "Words", "UPOS"), (4, 5, 3)), "UAS": (4, 5, 0)},
            ),
            (
                "sentences cut elsewhere keep their words",
                *([DOGS, RAIN], JOINED),
                {"Sentences": (2, 1, 0), "Words": (6, 6, 6), "UAS": (6, 6, 5)},
            ),
            ("a root agrees only with a root", RAIN, TURNED, {"UAS": (2, 2, 0)}),
            ("no head is wrong", RAIN, HEADLESS, {"UAS": (2, 2, 0), "Words": (2, 2, 2)}),
            (
                "words of a multiword token are aligned by form",
                fused(CANT, "can't", 2, 3),
                fused(CANT_OF_ONE_WORD, "can't", 2, 2),
                {"Tokens": (3, 3, 3), "Words": (4, 3, 3), "LAS": (4, 3, 3)},
            ),
            (
                "a multiword token left whole aligns no word",
                fused(CANT, "can't", 2, 3),
                CANT_WHOLE,
                {"Tokens": (3, 3, 3), "Words": (4, 3, 2), "UAS": (4, 3, 2)},
            ),
            # The words "a", "b", "c" meet in one stretch of text.
            (
                "overlapping multiword tokens form one stretch",
                *(fused(ABC, "ab", 1, 2), fused(ABC, "bc", 2, 3)),
                {"Tokens": (2, 2, 0), "Words": (3, 3, 3), "LAS": (3, 3, 3)},
            ),
            (
                "a token that sticks out of a multiword token is not aligned",
                *(fused(ABCD, "ab", 1, 2), A_BC_D),
                {"Words": (3, 3, 1), "LAS": (3, 3, 1)},
            ),
            ("space within a form parts no words", NEW_YORK, NEWYORK, {"LAS": (1, 1, 1)}),
            ("space between words does", NEW_YORK, APART, {"Tokens": (1, 2, 0)}),
        )
    ],
)
def test_counts_are_those_worked_by_hand(gold, system, expected) -> None:
    scores = evaluate(gold if isinstance(gold, list) else [gold], [system])
    assert {name: counts(scores[name]) for name in expected} == expected


def test_a_score_has_precision_recall_and_accuracy() -> None:
    tokens = evaluate([DOGS], [SPLIT])["Tokens"]
    assert (tokens.precision, tokens.recall) == pytest.approx((60.0, 75.0))
    assert tokens.f1 == pytest.approx(200 / 3)
    assert evaluate([TAGGED], [MISTAGGED])["UPOS"].aligned_accuracy == 75.0


def test_another_text_is_refused_with_the_first_difference() -> None:
    with pytest.raises(TextMismatchError, match="differ at character 4") as caught:
        evaluate([RAIN], [sentence(("It", "PRON", 2, "nsubj"), ("rans", "VERB", 0, "root"))])
    assert caught.value.detail == {"position": 4}
    assert caught.value.error_type == "text_mismatch"


def test_a_text_that_ends_early_is_refused() -> None:
    with pytest.raises(TextMismatchError, match="differ at character 7"):
        evaluate([RAIN, RAIN], [RAIN])


def test_empty_analyses_score_zero() -> None:
    assert {score.f1 for score in evaluate([], []).values()} == {0.0}


@st.composite
def analyses(draw: st.DrawFn) -> list[Sentence]:
    """Random sentences over a few letters, with random trees and multiword tokens."""
    return [draw(_sentences()) for _ in range(draw(st.integers(1, 3)))]


@st.composite
def _sentences(draw: st.DrawFn) -> Sentence:
    size = draw(st.integers(1, 6))
    words = tuple(
        Word(
            at,
            draw(st.text("abAB", min_size=1, max_size=3)),
            upos=draw(st.sampled_from(("NOUN", "VERB"))),
            head=draw(st.integers(0, at - 1)),
            deprel=draw(st.sampled_from(("dep", "nsubj", "nsubj:pass"))),
        )
        for at in range(1, size + 1)
    )
    tokens, at = [], 1
    while at <= size:
        last = draw(st.integers(at, min(size, at + 2)))
        ids = tuple(range(at, last + 1))
        form = words[at - 1].form if last == at else draw(st.text("abAB", min_size=1, max_size=4))
        tokens.append(Token(form, ids, span_line=last > at))
        at = last + 1
    return Sentence(words, tuple(tokens))


@given(analyses())
def test_identity_scores_a_hundred(sentences: list[Sentence]) -> None:
    scores = evaluate(sentences, sentences)
    assert tuple(scores) == METRICS
    assert {score.f1 for score in scores.values()} == {100.0}


@given(analyses(), st.data())
def test_swapping_gold_and_system_swaps_precision_and_recall(sentences, data) -> None:
    text = "".join(token.form for each in sentences for token in each.tokens)
    cuts = data.draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=len(text)))
    bounds = sorted({0, len(text)} | {cut for cut in cuts if cut < len(text)})
    forms = [text[start:end] for start, end in pairwise(bounds)]
    rows = [(form, "NOUN", at, "dep") for at, form in enumerate(forms)]
    system = [sentence(*rows)]
    there, back = evaluate(sentences, system), evaluate(system, sentences)
    for name in ("Tokens", "Sentences", "Words"):
        assert there[name].precision == back[name].recall
        assert there[name].f1 == pytest.approx(back[name].f1)


def test_annotation_on_real_files_is_scored_in_seconds(data_dir: Path) -> None:
    path = data_dir / "treebanks/UD_English-EWT/en_ewt-ud-test.conllu"
    gold = list(read_conllu(path))
    flat = [_hung_from_the_first(given) for given in gold]
    scores = evaluate(gold, flat)
    assert counts(scores["Words"]) == (25_094, 25_094, 25_094)
    # The official evaluation script prints these for the same two files.
    assert scores["UAS"].f1 == pytest.approx(6.73, abs=0.005)
    assert scores["LAS"].f1 == pytest.approx(3.50, abs=0.005)


def _hung_from_the_first(given: Sentence) -> Sentence:
    words = tuple(
        replace(word, head=min(word.id - 1, 1), deprel="punct" if word.id > 1 else "root")
        for word in given.words
    )
    return replace(given, words=words)
