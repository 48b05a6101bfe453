"""Tags of tokens in BIO (IOB2), and the files that hold them.

A file has a token on each line, its tag in the last column, and a blank line between sentences.
TABs separate the columns, or spaces in a line without TAB. Quotation marks are text. A file of
tokens alone is blind: its sentences are kept without tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Item, Part, attempt
from clients.benchmarks.lines import Line, any_line, blocks, encoding_of
from syntax.errors import EmptyTokenError, LabelError
from syntax.examples import TOKEN_MODES, Example, LabelSpec, Mode, Segment

MODES: Final[tuple[Mode, ...]] = TOKEN_MODES
REJECTS: Final = {
    "empty_token": "a sentence with a token that is empty or white space only",
    "label": "a sentence with a line that has no tag, or a tag of no known type (of a file of "
    "tokens alone, no sentence)",
    "invalid_character": "a sentence with a line that is not in the encoding",
}

OUTSIDE: Final = "O"
SCHEMES: Final = "O, or a type after one of B- I- L- E- U- S-"

_MARK = b"-DOCSTART-"
_TAG = re.compile(r"O|[BILEUS]-\S+")
_FIRST = frozenset("BUS")
_OPEN = frozenset("BI")


@lru_cache(maxsize=4096)
def is_tag(name: str) -> bool:
    """True for a tag of a scheme that `to_bio` knows.

    >>> [is_tag(name) for name in ("O", "U-LOC", "I-fromloc.city_name", "B-", "NP")]
    [True, True, True, False, False]
    """
    return _TAG.fullmatch(name) is not None


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """The same mentions in BIO; the tags may be IOB1, BIO, IOBES or BILOU.

    They are read as conlleval reads them: a tag that goes on with nothing (an ``I-X`` after ``O``,
    after another type, or after an end ``L-``, ``E-``, ``U-``, ``S-``) begins a mention.

    >>> to_bio(["I-PER", "I-PER", "B-PER", "O", "U-LOC", "I-ORG", "L-ORG"])
    ('B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC', 'B-ORG', 'I-ORG')
    """
    bio = []
    before = OUTSIDE
    for tag in tags:
        if not is_tag(tag):
            raise LabelError(f"{tag!r} is no tag; expected {SCHEMES}")
        goes_on = tag[0] not in _FIRST and before[0] in _OPEN and before[2:] == tag[2:]
        bio.append(tag if tag == OUTSIDE else ("I-" if goes_on else "B-") + tag[2:])
        before = tag
    return tuple(bio)


def tag_names(tags: Iterable[str]) -> tuple[str, ...]:
    """Distinct tags in id order, with both tags of each type.

    >>> tag_names(["I-time", "B-city", "O"])
    ('O', 'B-city', 'I-city', 'B-time', 'I-time')
    """
    types = sorted({tag[2:] for tag in tags} - {""})
    return (OUTSIDE, *(f"{prefix}-{name}" for name in types for prefix in "BI"))


def check_tokens(tokens: Sequence[str], tags: Sequence[str], where: str) -> None:
    """Refuse blank tokens, and another number of tags. A zero-width mark is a token."""
    for index, token in enumerate(tokens):
        if not token.strip():
            raise EmptyTokenError(f"{where}: token {index} is empty or white space: {token!r}")
    if len(tokens) != len(tags):
        raise LabelError(
            f"{where}: {len(tokens)} tokens and {len(tags)} tags; expected as many of both"
        )


def entities(*types: str) -> LabelSpec:
    return LabelSpec("ner_tags", "tags", tag_names(f"B-{name}" for name in types), "text")


def read_columns(
    part: Part,
    mode: Mode,  # noqa: ARG001
    *,
    label: LabelSpec,
    encodings: Sequence[str] = ("utf-8",),
) -> Iterator[Item]:
    """Sentences with their tags, and rejections for those that cannot be used.

    Tags become BIO, unless those of the label have no ``O``. An id is the split and the running
    number in the file (``dev-17``), whatever is rejected before it. ``-DOCSTART-`` lines are not
    tokens. A prefix ``en:``, in the part's own language, is removed where each token has it.
    """
    (path,) = part.files
    encoding = encoding_of(path, encodings)
    blind = not any_line(path, _has_tag)
    for number, (first, lines) in enumerate(_sentences(path), 1):
        example_id = f"{part.split}-{number}"
        yield attempt(example_id, _example, first, lines, part, encoding, label, blind)


def _sentences(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    for first, lines in blocks(path, lambda raw: not raw.strip()):
        marks = sum(line.startswith(_MARK) for line in lines)
        if marks < len(lines):
            yield first, lines


def _has_tag(raw: bytes) -> bool:
    values = raw.split(b"\t") if b"\t" in raw else raw.split()
    return any(values[1:]) and not raw.startswith(_MARK)


def _example(
    example_id: str,
    first: int,
    lines: list[bytes],
    part: Part,
    encoding: str,
    label: LabelSpec,
    blind: bool,
) -> Example:
    (path,) = part.files
    texts = [
        (number, Line(path, number, raw).text(encoding))
        for number, raw in enumerate(lines, first)
        if not raw.startswith(_MARK)
    ]
    if blind:
        tokens = _bare([line.rstrip("\t ") for _, line in texts], f"{part.lang}:")
        check_tokens(tokens, tokens, f"{path.name}, line {first}")
        return Example(example_id, (Segment(tokens=tuple(tokens)),), {label.name: None})
    rows = [_row(line, path, number, label) for number, line in texts]
    tokens = _bare([token for token, _ in rows], f"{part.lang}:")
    tags = tuple(tag for _, tag in rows)
    tags = to_bio(tags) if OUTSIDE in label.names else tags
    check_tokens(tokens, tags, f"{path.name}, line {first}")
    if unknown := set(tags) - set(label.names):
        raise LabelError(
            f"{path.name}, line {first}: tags {', '.join(sorted(unknown))}; "
            f"expected {', '.join(label.names)}"
        )
    return Example(example_id, (Segment(tokens=tuple(tokens)),), {label.name: tags})


def _row(line: str, path: Path, number: int, label: LabelSpec) -> tuple[str, str]:
    values = line.split("\t") if "\t" in line else line.rstrip(" ").split(" ")
    if any("\r" in value for value in values[1:]):
        raise LabelError(
            f"{path.name}, line {number}: {line!r} has a CR behind its token; end lines with LF"
        )
    for tag in values[:0:-1][:2]:
        if is_tag(tag) if OUTSIDE in label.names else tag in label.names:
            return values[0], tag
    raise LabelError(
        f"{path.name}, line {number}: {line!r} ends in no tag; "
        f"expected a token and, in the last column, a tag such as {label.names[1]}"
    )


def _bare(tokens: list[str], prefix: str) -> list[str]:
    if all(token.startswith(prefix) for token in tokens):
        return [token.removeprefix(prefix) for token in tokens]
    return tokens
