"""Benchmark examples, their labels, and the description of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from syntax.errors import SpecError

ParseMode = Literal["raw", "sentence", "pretokenized", "retokenize", "tokens_mwt"]
"""Ways to parse a text.

``raw``: the parser splits sentences and words; ``sentence``: the text is one sentence, also with
line breaks; ``pretokenized``: the given tokens are the words of one sentence; ``retokenize``: the
given tokens, joined by single spaces, are one sentence that the parser splits into words;
``tokens_mwt``: the given tokens are those of one sentence, and the parser splits multiword tokens
into their words.
"""

TOKEN_MODES: Final[tuple[ParseMode, ...]] = ("pretokenized", "retokenize", "tokens_mwt")
"""Modes that take tokens; the others take text."""

Mode = Literal[ParseMode, "gold"]
"""Ways to read a segment: by a parser, or as ``gold`` CoNLL-U, which has the trees."""

LongSentences = Literal["refuse", "split"]
"""Treatment of a sentence over the limit: an error, or parts that are parsed as sentences.

The first word of every part except the first has the MISC entry ``ContinuedSentence=Yes``.
"""

LabelKind = Literal["class", "float", "string", "tags", "spans"]
"""Type of a label column.

``class``: one of a closed list of names; ``float``, ``string``: a number, a text; ``tags``: a name
for each token of a segment, such as ``B-PER``; ``spans``: named spans of characters of a segment.
"""


@dataclass(frozen=True, slots=True)
class Segment:
    """One text of an example, in exactly one of three forms.

    Attributes:
        text: Running text (modes ``raw`` and ``sentence``).
        tokens: Tokens of one sentence (`TOKEN_MODES`).
        conllu: One or more CoNLL-U sentences (mode ``gold``).
    """

    text: str | None = None
    tokens: tuple[str, ...] | None = None
    conllu: str | None = None

    def __post_init__(self) -> None:
        given = [form for form in (self.text, self.tokens, self.conllu) if form is not None]
        if len(given) != 1:
            raise SpecError(f"a segment needs one of text, tokens and conllu; it has {len(given)}")

    @property
    def characters(self) -> int:
        """Length in code points, the spaces between tokens included."""
        if self.tokens is not None:
            return sum(map(len, self.tokens)) + max(len(self.tokens) - 1, 0)
        return len(self.text if self.text is not None else self.conllu or "")


class SpanLabel(NamedTuple):
    """Half-open span of code points in a segment's text, in which single spaces join tokens."""

    start_char: int
    end_char: int
    label: str = ""


LabelValue = str | float | tuple[str, ...] | tuple[SpanLabel, ...]
"""Value of a label column: ``tags`` are a tuple of names, ``spans`` one of `SpanLabel`."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training or test item; a missing label is ``None``, as in blind test sets.

    ``repairs`` names the faults that the reader corrected, such as ``answer_moved``; not stored.
    """

    example_id: str
    segments: tuple[Segment, ...]
    labels: Mapping[str, LabelValue | None] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """An item that its reader could not use, for the report."""

    example_id: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class LabelSpec:
    """A label column; ``names`` are in id order, and ``field`` is by default the first segment."""

    name: str
    kind: LabelKind
    names: tuple[str, ...] = ()
    field: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """Description of a benchmark split.

    Attributes:
        name: Dataset in the store, such as ``xnli``.
        split, lang: Partition of the dataset.
        fields: Name of each segment, such as ``("premise", "hypothesis")``.
    """

    name: str
    split: str
    lang: str
    fields: tuple[str, ...]
    labels: tuple[LabelSpec, ...] = ()
    mode: Mode = "raw"
    source: str = ""
    licence: str = ""
