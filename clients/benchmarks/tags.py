"""Tags of tokens: every scheme of the files becomes BIO, and their names have one order.

BIO (also called IOB2): ``B-X`` on the first token of a mention of type X, ``I-X`` on its other
tokens, ``O`` elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from syntax.errors import EmptyTokenError, LabelError

OUTSIDE: Final = "O"
SCHEMES: Final = "O, or a type after one of B- I- L- E- U- S-"

_TAG = re.compile(r"O|[BILEUS]-\S+")
_FIRST = frozenset("BUS")
_OPEN = frozenset("BI")


@lru_cache(maxsize=4096)
def is_tag(name: str) -> bool:
    """Whether it is a tag of one of the schemes that `to_bio` knows.

    >>> [is_tag(name) for name in ("O", "U-LOC", "I-fromloc.city_name", "B-", "NP")]
    [True, True, True, False, False]
    """
    return _TAG.fullmatch(name) is not None


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """The same mentions in BIO; the tags may be IOB1, BIO, IOBES or BILOU.

    They are read as conlleval reads them: a tag that goes on with nothing (an ``I-X`` after ``O``,
    after another type, or after an end ``L-``, ``E-``, ``U-``, ``S-``) begins a mention. So a file
    need not say which scheme it follows, and one that breaks its own loses no mention.

    Raises:
        LabelError: A tag is none of these.

    >>> to_bio(["I-PER", "I-PER", "B-PER", "O", "U-LOC", "I-ORG", "L-ORG"])
    ('B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC', 'B-ORG', 'I-ORG')
    """
    bio = []
    before = OUTSIDE
    for tag in tags:
        if not is_tag(tag):
            raise LabelError(f"{tag!r} is no tag; expected {SCHEMES}")
        bio.append(tag if tag == OUTSIDE else ("I-" if _goes_on(before, tag) else "B-") + tag[2:])
        before = tag
    return tuple(bio)


def _goes_on(before: str, tag: str) -> bool:
    return tag[0] not in _FIRST and before[0] in _OPEN and before[2:] == tag[2:]


def tag_names(tags: Iterable[str]) -> tuple[str, ...]:
    """The distinct tags in id order: ``O`` first, then by type, ``B`` before ``I``.

    Both tags of a type are there, whichever of them occurs, so that the list is the same for
    files that hold the same types.

    >>> tag_names(["I-time", "B-city", "O"])
    ('O', 'B-city', 'I-city', 'B-time', 'I-time')
    """
    types = sorted({tag[2:] for tag in tags} - {""})
    return (OUTSIDE, *(f"{prefix}-{name}" for name in types for prefix in "BI"))


def check_tokens(tokens: Sequence[str], tags: Sequence[str], where: str) -> None:
    """Refuse tokens that no parser takes, and tags that do not fit them.

    Raises:
        EmptyTokenError: A token is empty or white space only. A zero-width mark is a token.
        LabelError: There are not as many tags as tokens.
    """
    for index, token in enumerate(tokens):
        if not token.strip():
            raise EmptyTokenError(f"{where}: token {index} is empty or white space: {token!r}")
    if len(tokens) != len(tags):
        raise LabelError(
            f"{where}: {len(tokens)} tokens and {len(tags)} tags; expected as many of both"
        )
