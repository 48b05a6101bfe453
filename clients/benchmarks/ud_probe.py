"""SentEval's probing tasks (`senteval`) in any language, from the gold columns of UD treebanks."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final

from clients.benchmarks.base import Benchmark, register
from clients.benchmarks.ud import (
    IDS,
    LAYOUT,
    LICENCE,
    REJECTS,
    SEGMENTS,
    SOURCE,
    find_treebanks,
    origin_of,
    read_sentences,
)
from syntax.examples import TOKEN_MODES, Example, LabelSpec, LabelValue, Mode, Segment
from syntax.trees.sentence import Sentence, Word
from syntax.trees.ud import UPOS

DEEPEST: Final = 10

DEPTHS: Final = (*map(str, range(DEEPEST)), f"{DEEPEST}+")

NUMBERS: Final = (
    *("Coll", "Count", "Dual", "Grpa", "Grpl", "Inv", "Pauc", "Plur", "Ptan", "Sing", "Tri"),
)

TENSES: Final = ("Fut", "Imp", "Nfut", "Past", "Pqp", "Pres")

LABELS: Final = (
    LabelSpec("max_depth", "class", DEPTHS),
    LabelSpec("root_upos", "class", UPOS[1:]),
    LabelSpec("root_tense", "class", TENSES),
    LabelSpec("subj_number", "class", NUMBERS),
    LabelSpec("obj_number", "class", NUMBERS),
)

_PUNCTUATION: Final = ("PUNCT", "SYM")


def labels_of(sentence: Sentence) -> dict[str, LabelValue | None]:
    """Labels from a sentence's columns; None where they do not say it.

    As in SentEval only a common noun counts as the root's subject or object.
    """
    from syntax.matrices import tree_depth  # compiled: not for who only lists the readers

    words = sentence.words
    (root,) = (word for word in words if word.head == 0)
    depth = int(tree_depth([(word.head or 0) - 1 for word in words]).max())
    return {
        "max_depth": DEPTHS[min(depth, DEEPEST)],
        "root_upos": root.upos if root.upos in UPOS[1:] else None,
        "root_tense": _feature(root, "Tense", TENSES),
        "subj_number": _number(words, root, "nsubj"),
        "obj_number": _number(words, root, "obj"),
    }


def _number(words: tuple[Word, ...], root: Word, relation: str) -> str | None:
    dependents = (word for word in words if word.head == root.id)
    found = next((x for x in dependents if (x.deprel or "").split(":")[0] == relation), None)
    return _feature(found, "Number", NUMBERS) if found and found.upos == "NOUN" else None


def _feature(word: Word, name: str, known: tuple[str, ...]) -> str | None:
    """Value of a feature; None for several, or one outside of UD's inventory."""
    pairs = (pair.partition("=") for pair in (word.feats or "").split("|"))
    value = next((value for feature, _, value in pairs if feature == name), None)
    return value if value in known else None


def exchanged(tokens: tuple[str, ...], punctuation: tuple[bool, ...], draw: Random) -> int | None:
    """First of two neighbours to exchange, drawn at random; None where there are none.

    As in SentEval, neither begins the sentence or is punctuation, and a sentence with double
    quotes has none. Neighbours of the same form do not count.
    """
    if any(mark in token for token in tokens for mark in ('"', "''", "``", "“", "”")):
        return None
    places = [
        at
        for at in range(1, len(tokens) - 1)
        if not (punctuation[at] or punctuation[at + 1])
        and tokens[at].casefold() != tokens[at + 1].casefold()
    ]
    return draw.choice(places) if places else None


def _probe(example_id: str, conllu: str, sentence: Sentence, mode: Mode) -> Example:
    return Example(example_id, (SEGMENTS[mode](conllu, sentence),), labels_of(sentence))


def _shift(example_id: str, _conllu: str, sentence: Sentence, _mode: Mode) -> Example:
    tokens = tuple(token.form for token in sentence.tokens)
    punctuation = tuple(
        sentence.words[token.word_ids[0] - 1].upos in _PUNCTUATION for token in sentence.tokens
    )
    draw = Random(f"bigram_shift {example_id}")
    at = exchanged(tokens, punctuation, draw)
    label = None if at is None else draw.choice("IO")
    if at is not None and label == "I":
        tokens = (*tokens[:at], tokens[at + 1], tokens[at], *tokens[at + 2 :])
    return Example(example_id, (Segment(tokens=tokens),), {"bigram_shift": label})


_treebank = partial(
    Benchmark,
    fields=("text",),
    layout=LAYOUT,
    source=SOURCE,
    licence=LICENCE,
    origin=origin_of,
    find=find_treebanks,
    ids=IDS,
    rejects=REJECTS,
    general=True,
)

UD_PROBE: Final = register(
    _treebank(
        name="ud_probe",
        labels=LABELS,
        modes=tuple(SEGMENTS),
        read_part=partial(read_sentences, make=_probe),
        quirks=(
            "a sentence whose columns do not say a label has none there, and is counted",
            "max_depth counts edges from the root; it grows with length, unlike SentEval's",
            "subj_number and obj_number: the root's first nsubj and obj, if it is a NOUN",
        ),
    )
)

UD_PROBE_SHIFT: Final = register(
    _treebank(
        name="ud_probe_shift",
        labels=(LabelSpec("bigram_shift", "class", ("I", "O")),),
        modes=TOKEN_MODES,
        read_part=partial(read_sentences, make=_shift),
        quirks=(
            "label I: two neighbouring tokens are exchanged, not the first one and no punctuation; "
            "the draws depend on the sentence's id alone",
            "a sentence with double quotes, or without such neighbours, has no label",
        ),
    )
)
