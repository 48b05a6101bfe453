"""The CoNLL 2018 metrics: cases counted by hand, properties, and figures known from real files."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import Sentence, Token, Word
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
    token = Token(surface, tuple(range(first, last + 1)))
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


def test_an_analysis_agrees_with_itself() -> None:
    scores = evaluate([DOGS, RAIN], [DOGS, RAIN])
    assert tuple(scores) == METRICS
    assert {name: score.f1 for name, score in scores.items()} == dict.fromkeys(METRICS, 100.0)
    assert counts(scores["Words"]) == (6, 6, 6)
    assert counts(scores["Sentences"]) == (2, 2, 2)


def test_a_wrong_head_costs_uas_and_las() -> None:
    scores = evaluate([DOGS], [change(DOGS, 3, head=1)])
    assert counts(scores["UAS"]) == (4, 4, 3)
    assert counts(scores["LAS"]) == (4, 4, 3)
    assert scores["UPOS"].f1 == 100.0


def test_a_wrong_relation_costs_las_alone_and_a_subtype_costs_nothing() -> None:
    system = change(change(DOGS, 3, deprel="obl"), 1, deprel="nsubj:pass")
    scores = evaluate([DOGS], [system])
    assert counts(scores["UAS"]) == (4, 4, 4)
    assert counts(scores["LAS"]) == (4, 4, 3)


def test_each_annotation_is_counted_in_its_own_metric() -> None:
    gold = change(DOGS, 1, lemma="dog", xpos="NNS", feats="Number=Plur")
    wrong = change(DOGS, 1, upos="VERB", lemma="dogs", xpos="NN", feats="Number=Sing")
    scores = evaluate([gold], [wrong])
    for name in ("UPOS", "XPOS", "UFeats", "Lemmas"):
        assert counts(scores[name]) == (4, 4, 3), name
        assert scores[name].aligned_accuracy == 75.0


def test_all_tags_are_right_only_together() -> None:
    gold = change(DOGS, 1, xpos="NNS", feats="Number=Plur|Typo=Yes", lemma="dog")
    one_wrong = [{"upos": "VERB"}, {"xpos": "NN"}, {"feats": "Number=Sing"}]
    for wrong in one_wrong:
        assert counts(evaluate([gold], [change(gold, 1, **wrong)])["AllTags"]) == (4, 4, 3)
    system = change(gold, 1, lemma="dogs", feats="Number=Plur")
    assert counts(evaluate([gold], [system])["AllTags"]) == (4, 4, 4)


def test_features_outside_the_universal_ones_and_their_order_do_not_count() -> None:
    gold = change(DOGS, 2, feats="Mood=Ind|Tense=Pres")
    system = change(DOGS, 2, feats="Tense=Pres|Mood=Ind|Typo=Yes")
    assert evaluate([gold], [system])["UFeats"].f1 == 100.0


def test_a_gold_lemma_left_empty_matches_any() -> None:
    assert evaluate([DOGS], [change(DOGS, 1, lemma="dog")])["Lemmas"].f1 == 100.0
    assert evaluate([change(DOGS, 1, lemma="dog")], [DOGS])["Lemmas"].correct == 3


def test_a_split_word_and_its_dependents_are_wrong() -> None:
    system = sentence(
        ("Dogs", "NOUN", 2, "nsubj"),
        ("ba", "VERB", 0, "root"),
        ("rk", "VERB", 2, "dep"),
        ("loudly", "ADV", 2, "advmod"),
        (".", "PUNCT", 2, "punct"),
    )
    scores = evaluate([DOGS], [system])
    assert counts(scores["Tokens"]) == (4, 5, 3)
    assert counts(scores["Words"]) == (4, 5, 3)
    assert counts(scores["UPOS"]) == (4, 5, 3)
    # Three words are aligned, but the head of each is not: none is attached correctly.
    assert counts(scores["UAS"]) == (4, 5, 0)
    assert scores["Tokens"].precision == pytest.approx(60.0)
    assert scores["Tokens"].recall == pytest.approx(75.0)
    assert scores["Tokens"].f1 == pytest.approx(200 / 3)


def test_sentences_cut_elsewhere_keep_their_words() -> None:
    joined = sentence(
        ("Dogs", "NOUN", 2, "nsubj"),
        ("bark", "VERB", 0, "root"),
        ("loudly", "ADV", 2, "advmod"),
        (".", "PUNCT", 2, "punct"),
        ("It", "PRON", 6, "nsubj"),
        ("rains", "VERB", 2, "parataxis"),
    )
    scores = evaluate([DOGS, RAIN], [joined])
    assert counts(scores["Sentences"]) == (2, 1, 0)
    assert counts(scores["Words"]) == (6, 6, 6)
    assert counts(scores["UAS"]) == (6, 6, 5)


def test_a_root_agrees_only_with_a_root() -> None:
    turned = change(change(RAIN, 1, head=0, deprel="root"), 2, head=1, deprel="dep")
    assert evaluate([RAIN], [turned])["UAS"].correct == 0


def test_a_word_without_head_is_wrong_not_refused() -> None:
    untagged = change(change(RAIN, 1, head=None, deprel=None), 2, head=None, deprel=None)
    scores = evaluate([RAIN], [untagged])
    assert scores["UAS"].correct == 0
    assert scores["Words"].f1 == 100.0


CANT = sentence(
    ("They", "PRON", 4, "nsubj"),
    ("ca", "AUX", 4, "aux"),
    ("n't", "PART", 4, "advmod"),
    ("swim", "VERB", 0, "root"),
)


def test_words_of_a_multiword_token_are_aligned_by_form() -> None:
    gold = fused(CANT, "can't", 2, 3)
    system = fused(
        sentence(
            ("They", "PRON", 3, "nsubj"), ("N'T", "PART", 3, "advmod"), ("swim", "VERB", 0, "root")
        ),
        "can't",
        2,
        2,
    )
    whole = Token("can't", (2,), span_line=True)
    system = replace(system, tokens=(system.tokens[0], whole, system.tokens[2]))
    scores = evaluate([gold], [system])
    assert counts(scores["Tokens"]) == (3, 3, 3)
    assert counts(scores["Words"]) == (4, 3, 3)
    assert counts(scores["LAS"]) == (4, 3, 3)


def test_a_multiword_token_left_whole_aligns_no_word() -> None:
    gold = fused(CANT, "can't", 2, 3)
    system = sentence(
        ("They", "PRON", 3, "nsubj"), ("can't", "AUX", 3, "aux"), ("swim", "VERB", 0, "root")
    )
    scores = evaluate([gold], [system])
    assert counts(scores["Tokens"]) == (3, 3, 3)
    assert counts(scores["Words"]) == (4, 3, 2)
    assert counts(scores["UAS"]) == (4, 3, 2)


def test_overlapping_multiword_tokens_form_one_stretch() -> None:
    # Gold fuses "ab", the system "bc": the words "a", "b", "c" meet in one stretch of text.
    words = sentence(("a", "X", 0, "root"), ("b", "X", 1, "dep"), ("c", "X", 1, "dep"))
    scores = evaluate([fused(words, "ab", 1, 2)], [fused(words, "bc", 2, 3)])
    assert counts(scores["Tokens"]) == (2, 2, 0)
    assert counts(scores["Words"]) == (3, 3, 3)
    assert counts(scores["LAS"]) == (3, 3, 3)


def test_a_token_that_sticks_out_of_a_multiword_token_is_not_aligned() -> None:
    gold = fused(
        sentence(("a", "X", 0, "root"), ("b", "X", 1, "dep"), ("cd", "X", 1, "dep")), "ab", 1, 2
    )
    system = sentence(("a", "X", 0, "root"), ("bc", "X", 1, "dep"), ("d", "X", 1, "dep"))
    scores = evaluate([gold], [system])
    assert counts(scores["Words"]) == (3, 3, 1)
    assert counts(scores["LAS"]) == (3, 3, 1)


def test_white_space_within_a_form_is_no_difference() -> None:
    spaced = sentence(("New York", "PROPN", 0, "root"))
    apart = sentence(("New", "PROPN", 0, "root"), ("York", "PROPN", 1, "flat"))
    scores = evaluate([spaced], [apart])
    assert counts(scores["Tokens"]) == (1, 2, 0)
    assert evaluate([spaced], [sentence(("NewYork", "PROPN", 0, "root"))])["LAS"].f1 == 100.0


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
    assert {score.f1 for score in scores.values()} == {100.0}


@given(analyses(), st.data())
def test_swapping_gold_and_system_swaps_precision_and_recall(
    sentences: list[Sentence], data: st.DataObject
) -> None:
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
    from syntax.trees.conllu import read_conllu

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
