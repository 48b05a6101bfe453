"""Graph patterns find what a search through all words finds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest

from syntax import Parse, Word
from syntax.errors import SpecError
from syntax.trees.conllu import parse_from_sentences

Test = Callable[..., bool]


def feature(word: Word, name: str) -> str | None:
    """A value of the features of a word."""
    pairs = (pair.split("=") for pair in (word.feats or "").split("|") if pair)
    return dict(pairs).get(name)


CASES: list[tuple[str, Test]] = [
    ("pattern { V [upos=VERB] }", lambda s, v: v.upos == "VERB"),
    ('pattern { V [upos="VERB"|AUX] }', lambda s, v: v.upos in ("VERB", "AUX")),
    (
        "pattern { V [upos<>VERB|NOUN|PUNCT, Number] }",
        lambda s, v: v.upos not in ("VERB", "NOUN", "PUNCT") and bool(feature(v, "Number")),
    ),
    (
        "pattern { V [upos=NOUN, !Number] }",
        lambda s, v: v.upos == "NOUN" and feature(v, "Number") is None,
    ),
    (
        'pattern { V [form=re"[A-Z].*", Number=Sing|Plur] }',
        lambda s, v: (
            v.form[0].isascii() and v.form[0].isupper() and feature(v, "Number") in ("Sing", "Plur")
        ),
    ),
    (
        'pattern { V [Number__psor="Sing", Case<>Nom] }',
        lambda s, v: feature(v, "Number[psor]") == "Sing" and feature(v, "Case") != "Nom",
    ),
    (
        "pattern { V -[obj]-> O; V << O }",
        lambda s, v, o: o.head == v.id and o.deprel == "obj" and v.id < o.id,
    ),
    (
        "pattern { V -[1=nsubj|obj]-> O; V < O }",
        lambda s, v, o: (
            o.head == v.id
            and (o.deprel.split(":")[0] == "nsubj" or o.deprel == "obj")
            and v.id + 1 == o.id
        ),
    ),
    (
        'pattern { V -[^punct|re".*mod"]-> O; O > V }',
        lambda s, v, o: (
            o.head == v.id
            and not (o.deprel == "punct" or re.fullmatch(".*mod", o.deprel))
            and o.id == v.id + 1
        ),
    ),
    (
        "pattern { * -[root]-> V; V -> O; O -> P }",
        lambda s, v, o, p: v.deprel == "root" and o.head == v.id and p.head == o.id,
    ),
    (
        "pattern { V -> O; V -> P; O.upos = P.upos; O << P }",
        lambda s, v, o, p: o.head == p.head == v.id and o.upos == p.upos and o.id < p.id,
    ),
    (
        "pattern { V [upos=VERB] } without { V -[1=nsubj]-> S }",
        lambda s, v: (
            v.upos == "VERB"
            and not any(w.head == v.id and w.deprel.split(":")[0] == "nsubj" for w in s)
        ),
    ),
    (
        "pattern { V [upos=VERB] } with { V -[obj]-> S; S -> D } "
        "without { V -> * ; * -[root]-> V }",
        lambda s, v: (
            v.upos == "VERB"
            and any(
                w.head == v.id and w.deprel == "obj" and any(d.head == w.id for d in s) for w in s
            )
            and not (any(w.head == v.id for w in s) and v.deprel == "root")
        ),
    ),
    (
        "pattern { V -> O } without { V -> P; P << O }",
        lambda s, v, o: (
            o.head == v.id
            and not any(p.head == v.id and p.id < o.id for p in s if p.id not in (v.id, o.id))
        ),
    ),
]


def with_features(parse: Parse) -> Parse:
    """The parse, with features of most of its words."""
    feats = ("Case=Nom|Number=Sing", None, "Number=Plur", "Case=Acc|Number[psor]=Sing", "Typo=Yes")
    return parse_from_sentences(
        [
            replace(
                sentence,
                words=tuple(replace(word, feats=feats[word.id % 5]) for word in sentence.words),
            )
            for sentence in parse.sentences()
        ]
    )


@pytest.fixture(scope="module")
def records(parses, make_record):
    return [make_record(with_features(parse), number) for number, parse in enumerate(parses)]


@pytest.fixture
def parsed(store, records):
    store.parses.append(records)
    return store


@pytest.mark.parametrize(("pattern", "test"), CASES, ids=[pattern for pattern, _ in CASES])
def test_a_pattern_finds_what_a_search_finds(parsed, records, pattern: str, test: Test) -> None:
    nodes = test.__code__.co_argcount - 1
    expected = [
        (record.key, number, *(word.id for word in chosen))
        for record in records
        for number, sentence in enumerate(record.parse.sentences())
        for chosen in permutations(sentence.words, nodes)
        if test(sentence.words, *chosen)
    ]
    names = "VOP"[:nodes]
    ids = ", ".join(f"{name}.id" for name in names)
    found = parsed.sql(f"{pattern} select key, sentence, {ids} from matches").fetchall()
    assert expected
    assert sorted(found) == sorted(expected)


def test_a_pattern_alone_shows_places_texts_and_words(parsed) -> None:
    relation = parsed.sql("% the objects\npattern { V -[obj]-> O };")
    assert relation.columns == ["key", "sentence", "text", "V", "V_form", "O", "O_form"]
    rows = relation.fetchall()
    assert rows
    for _, _, text, _, verb, _, dependent in rows:
        assert verb in text
        assert dependent in text
    counted = parsed.sql(
        "pattern { V -[obj]-> O } select V.lemma, count(*) from matches group by 1"
    )
    assert sum(number for _, number in counted.fetchall()) == len(rows)


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("pattern { V [upos= }", "`}` came, and a value was expected"),
        ("pattern {\n V -[obj> O }", "line 2 of the pattern: `>` came"),
        ("pattern { }", "a node in `pattern`"),
        ("pattern { V -> O", "the end came, and `;` was expected"),
        ("pattern { e: V -> O }", "`:` came"),
        ("pattern { * -> * }", "a node at one end"),
        ("pattern { key [] }", "the name of a column"),
        ("pattern { V []; v [] }", "of another node"),
        ("pattern { V [] } drop table words", "Parser Error|syntax error"),
    ],
)
def test_what_is_no_pattern_is_named(parsed, pattern: str, told: str) -> None:
    with pytest.raises(Exception, match=told) as refused:
        parsed.sql(pattern)
    assert isinstance(refused.value, SpecError) or "error" in told.lower()


def test_values_cannot_leave_their_quotes(parsed) -> None:
    hostile = 'pattern { V [form="\' or true --"|re"it\'s"] }'
    assert parsed.sql(hostile).fetchall() == []
