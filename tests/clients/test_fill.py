"""CoNLL-U with empty columns: what is given stays, what is empty comes from the parser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clients import Client
from clients.fill import filled
from syntax.errors import CycleError, MissingHeadError, ParsebankError
from syntax.trees.conllu import format_conllu, parse_conllu
from syntax.trees.sentence import Sentence

COLUMNS = ("lemma", "upos", "xpos", "feats", "head", "deprel")
SOURCE = """
#<>sent_id<>=<>a
1 Dogs dog NOUN NNS Number=Plur 4 nsubj 4:nsubj Gloss=x
2-3 don't _ _ _ _ _ _ _ _
2 do do AUX VBP Mood=Ind 4 aux _ _
3 n't not PART RB _ 4 advmod _ _
4 bark bark VERB VB VerbForm=Inf 0 root 0:root SpaceAfter=No
4.1 loud _ _ _ _ _ _ 4:dep _
5 . . PUNCT . _ 4 punct _ _

"""
WHOLE = next(parse_conllu(SOURCE.replace(" ", "\t").replace("<>", " ").lstrip()))


def without(*columns: str, words: Any = range(5)) -> Sentence:
    """The sentence with some columns of some words empty."""
    nothing: dict[str, Any] = dict.fromkeys(columns)
    changed = [replace(w, **nothing) if at in words else w for at, w in enumerate(WHOLE.words)]
    return replace(WHOLE, words=tuple(changed))


def fill_one(client: Client, sentence: Sentence) -> Sentence:
    (found,) = filled(client, [sentence], lang="en")
    assert isinstance(found, Sentence), found
    return found


def column(sentence: Sentence, name: str) -> list[Any]:
    return [getattr(word, name) for word in sentence.words]


def test_words_alone_get_the_parse_of_their_words(client) -> None:
    found = fill_one(client, without(*COLUMNS))
    parse = client.parse(tokens=[column(WHOLE, "form")], lang="en").parsed()[0].parse
    for name in COLUMNS:
        assert column(found, name) == getattr(parse, name)
    assert (found.tokens, found.empty_nodes, found.comments) == (
        *(WHOLE.tokens, WHOLE.empty_nodes, WHOLE.comments),
    )
    assert column(found, "deps") == column(WHOLE, "deps")
    assert column(found, "misc") == column(WHOLE, "misc")


def test_a_whole_sentence_stays_and_one_with_a_tree_gets_tags(client) -> None:
    assert fill_one(client, WHOLE) == WHOLE
    assert None not in column(fill_one(client, without("lemma", "upos", "xpos", "feats")), "upos")


def test_an_empty_feats_column_of_a_tagged_word_means_none(client) -> None:
    assert column(fill_one(client, without("lemma")), "feats") == column(WHOLE, "feats")


def test_relations_of_given_heads_are_the_parsers_where_it_agrees(client) -> None:
    tree = fill_one(client, without("head", "deprel"))
    found = fill_one(client, without("deprel"))
    for word, own in zip(found.words, tree.words, strict=True):
        same = own.deprel if own.head == word.head else "dep"
        assert word.deprel == ("root" if word.head == 0 else same)


@pytest.mark.parametrize(
    ("sentence", "error"),
    [
        (without("head", words=[1]), MissingHeadError),
        (without("head", "deprel", words=[0, 2]), MissingHeadError),
        (without("head"), MissingHeadError),
        (replace(WHOLE, words=(replace(WHOLE.words[0], head=1), *WHOLE.words[1:])), CycleError),
    ],
)
def test_a_sentence_that_contradicts_itself_fails_alone(client, sentence, error) -> None:
    before, found, after = filled(client, [WHOLE, sentence, without("upos")], lang="en")
    assert isinstance(found, error)
    assert isinstance(found, ParsebankError)
    assert before == WHOLE
    assert isinstance(after, Sentence)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sets(st.sampled_from(COLUMNS[:4])), min_size=5, max_size=5), st.booleans())
def test_what_is_given_always_stays(client, emptied, is_parsed) -> None:
    words = [
        replace(word, **dict.fromkeys([*names, *(() if is_parsed else COLUMNS[4:])]))
        for word, names in zip(WHOLE.words, emptied, strict=True)
    ]
    sentence = replace(WHOLE, words=tuple(words))
    found = fill_one(client, sentence)
    for before, after in zip(sentence.words, found.words, strict=True):
        for name in (*COLUMNS, "form", "deps", "misc"):
            kept = getattr(before, name)
            assert kept is None or getattr(after, name) == kept
    assert found.tree.root >= 0
    assert next(parse_conllu(format_conllu([found]))) == found


def test_the_command_writes_conllu_and_reports_failures(invoke, tmp_path) -> None:
    path = tmp_path / "in.conllu"
    bad = without("head", words=[1])
    path.write_text(format_conllu([without(*COLUMNS), bad]), encoding="utf-8")
    run = invoke("fill", path, "--lang", "en", "--store", tmp_path / "store")
    assert run.exit_code == 1
    first, second = parse_conllu(run.stdout)
    assert first.tree.root in range(5)
    assert second == bad
    assert "sentence 2: missing_head" in run.stderr
