"""Parses as documents of spaCy and Stanza, read by the libraries themselves."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from syntax import Parse, parse_conllu
from syntax.trees.conllu import parse_from_sentences
from syntax.trees.documents import spacy_columns, stanza_sentences

CONLLU = """
# text = Le prix  du pain can't.
1 Le le DET D Definite=Def 2 det _ _
2 prix _ NOUN _ _ 8 nsubj _ SpacesAfter=\\s\\s
3-4 du _ _ _ _ _ _ _ _
3 de _ ADP _ _ 5 case _ _
4 le _ DET _ _ 5 det _ _
5 pain _ NOUN _ _ 2 nmod _ _
6-7 can't _ _ _ _ _ _ _ SpaceAfter=No
6 ca _ AUX _ _ 8 aux _ _
7 n't _ PART _ _ 8 advmod _ _
8 . _ PUNCT _ _ 0 root _ SpacesAfter=\\n

# text = New York
1 New<>York _ PROPN _ Number=Sing 0 root _ _

"""


@pytest.fixture
def parse() -> Parse:
    lines = CONLLU.lstrip("\n").split("\n")
    written = [line if line.startswith("#") else line.replace(" ", "\t") for line in lines]
    text = "\n".join(written).replace("<>", " ")
    return parse_from_sentences(list(parse_conllu(text)), layout="spaces")


def test_tokens_of_a_spacy_document_are_words(parse: Parse) -> None:
    found = spacy_columns(parse)
    assert found["words"] == parse.form
    assert (
        "".join(
            word + " " * space for word, space in zip(found["words"], found["spaces"], strict=True)
        )
        == "Le prix de le pain can't. New York"
    )
    assert found["heads"] == [1, 7, 4, 4, 1, 7, 7, 7, 8]
    assert [found["deps"][at] for at in (7, 8)] == ["ROOT", "ROOT"]
    assert found["lemmas"][:2] == ["le", ""]
    kept = {"text": parse.text, "multiword_tokens": [[2, 4, "du"], [5, 7, "can't"]]}
    assert found["user_data"] == kept


def test_stanza_entries_are_those_of_conllu(parse: Parse) -> None:
    first, second = stanza_sentences(parse)
    assert [entry["id"] for entry in first] == [1, 2, (3, 4), 3, 4, 5, (6, 7), 6, 7, 8]
    places = {entry["id"]: entry.get("start_char") for entry in first}
    assert (places[3, 4], places[3], places[6, 7], places[6], places[7]) == (9, None, 17, 17, 19)
    assert second == [
        {"id": 1, "text": "New York", "upos": "PROPN", "feats": "Number=Sing", "head": 0}
        | {"deprel": "root", "start_char": 24, "end_char": 32}
    ]


def test_spacy_reads_the_document(parse: Parse) -> None:
    spacy = quiet_import("spacy")
    document = spacy.tokens.Doc(spacy.vocab.Vocab(), **spacy_columns(parse))
    assert document.text == "Le prix de le pain can't. New York"
    assert [sentence.text for sentence in document.sents] == [document.text[:25], "New York"]
    words = parse.parents().tolist()
    assert [token.head.i for token in document] == [
        at if h < 0 else h for at, h in enumerate(words)
    ]
    assert [token.pos_ for token in document] == parse.upos
    assert (str(document[0].morph), document[0].tag_, document[8].dep_) == (
        *("Definite=Def", "D", "ROOT"),
    )


def test_stanza_reads_the_document(parse: Parse) -> None:
    stanza = quiet_import("stanza")
    document = stanza.Document(stanza_sentences(parse), text=parse.text)
    words = [word for sentence in document.sentences for word in sentence.words]
    assert [word.text for word in words] == parse.form
    assert [(word.head, word.deprel) for word in words] == [
        *zip(parse.head, parse.deprel, strict=True)
    ]
    tokens = [token for sentence in document.sentences for token in sentence.tokens]
    assert [token.text for token in tokens] == [
        parse.text[start:end] for start, end in zip(parse.token_start, parse.token_end, strict=True)
    ]
    assert [sentence.text for sentence in document.sentences] == [
        "Le prix  du pain can't.",
        "New York",
    ]


def quiet_import(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)
