"""The published types of dependencies, and choices of a word-order report."""

from __future__ import annotations

from typing import Final, Literal

Type = tuple[str, str, str]
"""UPOS of the dependent, UPOS of the head, relation without its subtype."""

Missing = Literal["dropped", "as_published"]
"""Treatment of a type of which a language has too few dependents: two languages are compared
without it, or its share is 0.5, as in the published vectors."""

Linkage = Literal["average", "single", "complete", "weighted"]
"""Methods of ``scipy.cluster.hierarchy.linkage`` that hold for any distance; ``single``, the
nearest point, is that of the published figure."""


def _read_types(text: str) -> tuple[Type, ...]:
    rows = (line.split(": ") for line in text.strip().splitlines())
    pairs = ((dependent, *pair.split()) for dependent, row in rows for pair in row.split(", "))
    return tuple((dependent, head, deprel) for dependent, head, deprel in pairs)


PUBLISHED_TYPES: Final = _read_types("""
ADJ: ADJ conj, NOUN conj, NOUN amod
ADP: NOUN case, PRON case, PROPN case
ADV: ADJ advmod, ADV advmod, NOUN advmod, VERB advmod
AUX: ADJ cop, NOUN cop, VERB aux
CCONJ: ADJ cc, NOUN cc, PROPN cc, VERB cc
DET: NOUN det
NOUN: ADJ conj, ADJ nsubj, ADJ obl, NOUN appos, NOUN conj, NOUN nmod, NOUN nsubj
NOUN: VERB nsubj, VERB obj, VERB obl
NUM: NOUN nummod
PRON: NOUN nmod, VERB iobj, VERB nsubj, VERB obj, VERB obl
PROPN: NOUN nmod, PROPN conj, PROPN flat, VERB nsubj, VERB obj, VERB obl
PUNCT: ADJ punct, NOUN punct, NUM punct, PROPN punct, VERB punct
SCONJ: VERB mark
VERB: NOUN conj, NOUN acl, VERB advcl, VERB ccomp, VERB conj, VERB xcomp
""")
"""The 52 types of the published vectors, in their order. The release has the vectors without the
names of their columns; the names were found by comparing the columns with counts in treebanks."""

UNCERTAIN_TYPES: Final = frozenset(PUBLISHED_TYPES[at] for at in (0, 1, 18, 22, 35, 36, 46, 50))
"""Types of columns that are constant over the published languages; their names are guesses."""

NEUTRAL_SHARE: Final = 0.5
"""The published share of a type of which a language has too few dependents."""
