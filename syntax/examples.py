"""Benchmark examples on their way from a reader to the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from syntax.errors import SpecError

ParseMode = Literal["raw", "sentence", "pretokenized", "retokenize"]
"""How a text is to be parsed.

``raw``: the parser splits sentences and words; ``sentence``: the text is one sentence, whatever
line breaks it holds; ``pretokenized``: the given tokens are the words of one sentence;
``retokenize``: the given tokens, joined by single spaces, are one sentence in which the parser
finds words of its own.
"""

Mode = Literal[ParseMode, "gold"]
"""How a segment is to be read: by a parser, or ``gold``: the CoNLL-U carries its trees."""

LongSentences = Literal["refuse", "split"]
"""What becomes of a sentence over the limit: an error, or pieces that are parsed as sentences.

The first word of every piece but the first has the MISC entry ``ContinuedSentence=Yes``.
"""

LabelKind = Literal["class", "float", "string", "tags", "spans"]
"""What a label column holds.

``class``: one of a closed list of names; ``float``, ``string``: a number, a text; ``tags``: a name
for each token of a segment, such as ``B-PER``; ``spans``: named spans of characters of a segment,
such as answers or entity mentions.
"""


@dataclass(frozen=True, slots=True)
class Segment:
    """One text of an example; exactly one of the three forms is given.

    Attributes:
        text: Running text (modes ``raw`` and ``sentence``).
        tokens: Tokens of one sentence (modes ``pretokenized`` and ``retokenize``).
        conllu: One or more CoNLL-U sentences (mode ``gold``).

    Raises:
        SpecError: None or several forms are given.
    """

    text: str | None = None
    tokens: tuple[str, ...] | None = None
    conllu: str | None = None

    def __post_init__(self) -> None:
        given = [form for form in (self.text, self.tokens, self.conllu) if form is not None]
        if len(given) != 1:
            raise SpecError(f"a segment needs one of text, tokens and conllu; {len(given)} came")

    @property
    def characters(self) -> int:
        """Length in code points, the spaces between tokens included."""
        if self.tokens is not None:
            return sum(map(len, self.tokens)) + max(len(self.tokens) - 1, 0)
        return len(self.text if self.text is not None else self.conllu or "")


class SpanLabel(NamedTuple):
    """A span of characters of a segment's text, half-open, in code points, and its name.

    The text of given tokens is the tokens joined by single spaces. The name is empty where there
    is nothing to tell.
    """

    start_char: int
    end_char: int
    label: str = ""


LabelValue = str | float | tuple[str, ...] | tuple[SpanLabel, ...]
"""The value of a label column: ``tags`` are a tuple of names, ``spans`` one of `SpanLabel`."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training or test item: its segments in order, and its labels by name.

    A label is None where nobody gave one, as in blind test sets.

    ``repairs`` names what its reader put right, such as ``answer_moved``, so that it can be
    counted; it is not stored.
    """

    example_id: str
    segments: tuple[Segment, ...]
    labels: Mapping[str, LabelValue | None] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """An item that its reader could not use, so that the report can name it."""

    example_id: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class LabelSpec:
    """A label column.

    Attributes:
        name: Name of the column.
        kind: What it holds.
        names: For classes and tags the closed list of names, in id order; for spans too, where
            they are named.
        field: For tags and spans the segment that they are about; the first when left out.
    """

    name: str
    kind: LabelKind
    names: tuple[str, ...] = ()
    field: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """What a benchmark split is, as its reader knows it.

    Attributes:
        name: Dataset in the store, such as ``xnli``.
        split, lang: Partition of the dataset.
        fields: Name of each segment, such as ``("premise", "hypothesis")``.
        labels: Label columns.
        mode: How segments are to be read.
        source, licence: Where the data comes from and under which terms.
    """

    name: str
    split: str
    lang: str
    fields: tuple[str, ...]
    labels: tuple[LabelSpec, ...] = ()
    mode: Mode = "raw"
    source: str = ""
    licence: str = ""
