"""The closed inventories of Universal Dependencies v2, as small integers for storage.

Id 0 is "none". The order is part of the stored format: append, never reorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

UPOS: Final = (
    "_",
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)

DEPREL: Final = (
    "_",
    *("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf"),
    *("compound", "conj", "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl"),
    *("fixed", "flat", "goeswith", "iobj", "list", "mark", "nmod", "nsubj", "nummod", "obj"),
    *("obl", "orphan", "parataxis", "punct", "reparandum", "root", "vocative", "xcomp"),
)
"""Universal relations by id; subtypes share their relation's id."""

_UPOS_IDS: Final = {tag: index for index, tag in enumerate(UPOS)}
_DEPREL_IDS: Final = {relation: index for index, relation in enumerate(DEPREL)}


def upos_id(tag: str | None) -> int:
    """Id of a UPOS tag; 0 for ``None`` and for a tag outside of the inventory."""
    return _UPOS_IDS.get(tag or "_", 0)


@lru_cache(maxsize=4096)  # treebanks have a few hundred subtypes; a look-up is faster than a split
def deprel_id(relation: str | None) -> int:
    """Id of a relation without its subtype; 0 for ``None`` and outside of the inventory.

    >>> deprel_id("nsubj:pass") == deprel_id("nsubj")
    True
    """
    return _DEPREL_IDS.get((relation or "_").partition(":")[0], 0)


def upos_ids(tags: Sequence[str | None]) -> NDArray[np.uint8]:
    return np.fromiter(map(upos_id, tags), np.uint8, len(tags))


def deprel_ids(relations: Sequence[str | None]) -> NDArray[np.uint8]:
    return np.fromiter(map(deprel_id, relations), np.uint8, len(relations))
