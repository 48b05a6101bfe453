"""The service's answers as typed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clients.client.failures import named_error
from syntax.drawing.page import listing, plain, short
from syntax.errors import ParsebankError
from syntax.trees.parse import WORD_COLUMNS, Parse
from syntax.trees.sentence import Sentence
from syntax.trees.spacing import with_spacing

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Named:
    """Name and fingerprint of a parser or tokenizer."""

    name: str
    fingerprint: str


@dataclass(frozen=True, slots=True, eq=False)
class Wordpieces:
    """The pieces of one text, without special tokens, aligned to its words; all arrays are int32.

    Attributes:
        offsets: Character span of each piece in the text. *Shape:* (L, 2).
        word_ids: Word of each piece, 0-based through the text, -1 for none. *Shape:* (L,).
        parents: The forest over pieces, -1 at roots and isolated pieces. *Shape:* (L,).
    """

    input_ids: NDArray[np.int32]
    offsets: NDArray[np.int32]
    word_ids: NDArray[np.int32]
    parents: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.input_ids)

    def forms(self, text: str) -> list[str]:
        return [text[start:end] for start, end in self.offsets.tolist()]


class Matrices(dict[str, NDArray[Any]]):
    """Matrices of a text by name, over labelled nodes; notebooks show them as heat maps."""

    def __init__(self, matrices: Mapping[str, NDArray[Any]], labels: Sequence[str]) -> None:
        super().__init__(matrices)
        self.labels = tuple(labels)

    def _repr_html_(self) -> str:
        from syntax.drawing.heatmap import draw_matrix
        from syntax.drawing.page import figures

        return figures([draw_matrix(name, matrix, self.labels) for name, matrix in self.items()])


@dataclass(frozen=True, eq=False)
class ParsedItem:
    """One text and its analysis.

    Attributes:
        key: Parse key, determined by text, parser, language and mode.
        cached: True if the parse was stored before.
        matrices: The requested ones of ``distance``, ``depth`` and ``ancestor``, over the
            wordpieces (over the words without a tokenizer).
        token_words: For tokens: the words of each token, 0-based through the text.
        word_labels: With ``token_labels``: the label of each word, ``None`` without a token.
    """

    key: str
    cached: bool
    parse: Parse
    wordpieces: Wordpieces | None
    matrices: Mapping[str, NDArray[Any]]
    token_words: list[list[int]] | None = None
    word_labels: list[str | None] | None = None
    json: JsonObject = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text exactly as received; offsets count its characters."""
        return self.parse.text

    @cached_property
    def sentences(self) -> list[Sentence]:
        """CoNLL-U sentences, each with ``.words``, ``.tokens`` and ``.tree``."""
        return self.parse.sentences()

    def _repr_html_(self) -> str:
        from clients.client.pictures import draw_item
        from syntax.drawing.page import figures

        return figures(draw_item(self))

    def __repr__(self) -> str:
        facts: dict[str, object] = {"text": self.text, "words": self.parse.word_count}
        if self.wordpieces is not None:
            facts["wordpieces"] = len(self.wordpieces)
        return plain("ParsedItem", {**facts, "matrices": [*self.matrices], "key": short(self.key)})


@dataclass(frozen=True, slots=True, eq=False)
class ItemError:
    """A text that failed; the other texts of its request are not affected."""

    error: ParsebankError
    json: JsonObject = field(default_factory=dict)

    @property
    def error_type(self) -> str:
        """Stable name of the error, such as ``sentence_too_long``."""
        return str(self.error.detail.get("error_type", self.error.error_type))

    @property
    def message(self) -> str:
        return self.error.message


@dataclass(frozen=True, slots=True, eq=False)
class ParseResult:
    """The answer to one request, with one item per text, in order."""

    parser: Named
    tokenizer: Named | None
    items: tuple[ParsedItem | ItemError, ...]
    json: JsonObject = field(repr=False)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ParsedItem | ItemError]:
        return iter(self.items)

    def parsed(self) -> list[ParsedItem]:
        """All items; raises the named error of the first that failed."""
        for item in self.items:
            if isinstance(item, ItemError):
                raise item.error
        return [item for item in self.items if isinstance(item, ParsedItem)]

    def _repr_html_(self) -> str:
        rows = [
            (number, item.text, len(item.sentences), item.parse.word_count, short(item.key))
            if isinstance(item, ParsedItem)
            else (number, f"{item.error_type}: {item.message}", "", "", "")
            for number, item in enumerate(self.items)
        ]
        names = ("item", "text", "sentences", "words", "key")
        return listing(f"ParseResult of {self.parser.name}", names, rows)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a query, mappings by column in iteration; ``truncated`` if there are more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def _repr_html_(self) -> str:
        more = "; there are more" if self.truncated else ""
        return listing(f"{len(self)} rows{more}", self.columns, self.rows)


def decode_rows(answer: JsonObject) -> Rows:
    return Rows(
        columns=tuple(column["name"] for column in answer["columns"]),
        rows=tuple(map(tuple, answer["rows"])),
        truncated=answer["truncated"],
    )


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of a text, and what still holds the text.

    Attributes:
        examples: Number of deleted examples in all datasets.
        datasets: The same by ``dataset``, ``tokenizer``, ``split`` and ``lang``.
        pins: Pins of dataset versions that hold the text; while they exist, a vacuum keeps the
            text on disk.
        same_text: Keys of other parses of the same text, which stay.
        jobs: Jobs whose uploads hold the text and may store it again.
    """

    dry_run: bool
    keys: tuple[str, ...]
    examples: int
    datasets: tuple[JsonObject, ...]
    pins: tuple[str, ...]
    same_text: tuple[str, ...]
    jobs: tuple[str, ...]


def decode_deletion(answer: JsonObject) -> Deletion:
    return Deletion(
        dry_run=answer["dry_run"],
        keys=tuple(answer["keys"]),
        examples=answer["examples"],
        datasets=tuple(answer["datasets"]),
        pins=tuple(answer["pins"]),
        same_text=tuple(answer["same_text"]),
        jobs=tuple(answer["jobs"]),
    )


def decode_parse_result(answer: JsonObject) -> ParseResult:
    tokenizer = answer.get("tokenizer")
    return ParseResult(
        parser=decode_named(answer["parser"]),
        tokenizer=decode_named(tokenizer) if tokenizer else None,
        items=tuple(decode_item(item) for item in answer["items"]),
        json=answer,
    )


def decode_named(entry: JsonObject) -> Named:
    return Named(name=entry["name"], fingerprint=entry["fingerprint"])


def decode_item(item: JsonObject) -> ParsedItem | ItemError:
    if item.get("error"):
        return ItemError(named_error(item["error"]), item)
    pieces = item.get("wordpieces")
    matrices = item.get("matrices") or {}
    parse = _parse(item["text"], item["sentences"])
    wordpieces = _wordpieces(pieces) if pieces else None
    labels = parse.form if wordpieces is None else wordpieces.forms(parse.text)
    known = {name: _matrix(name, rows) for name, rows in matrices.items() if rows is not None}
    return ParsedItem(
        key=item["key"],
        cached=item["cached"],
        parse=parse,
        wordpieces=wordpieces,
        matrices=Matrices(known, labels),
        token_words=item.get("token_words"),
        word_labels=item.get("word_labels"),
        json=item,
    )


def _parse(text: str, sentences: Sequence[JsonObject]) -> Parse:
    words = [word for sentence in sentences for word in sentence["words"]]
    tokens = [token for sentence in sentences for token in sentence["tokens"]]
    starts = _starts([len(sentence["words"]) for sentence in sentences])
    # Spacing is left out: the text determines it.
    misc = [with_spacing(word.get("misc"), []) for word in words]
    return Parse(
        text=text,
        **{name: [word.get(name) for word in words] for name in WORD_COLUMNS},
        word_start=[word["start_char"] for word in words],
        word_end=[word["end_char"] for word in words],
        token_start=[token["start_char"] for token in tokens],
        token_end=[token["end_char"] for token in tokens],
        token_first_word=_starts([len(token["word_ids"]) for token in tokens]),
        sentence_start=[sentence["start_char"] for sentence in sentences],
        sentence_end=[sentence["end_char"] for sentence in sentences],
        sentence_first_word=starts,
        misc=misc if any(misc) else None,
    )


def _starts(lengths: Sequence[int]) -> list[int]:
    return list(accumulate(lengths, initial=0))[:-1]


def _wordpieces(pieces: JsonObject) -> Wordpieces:
    word_ids = [-1 if word is None else word for word in pieces["word_ids"]]
    return Wordpieces(
        input_ids=np.asarray(pieces["input_ids"], dtype=np.int32),
        offsets=np.asarray(pieces["offset_mapping"], dtype=np.int32).reshape(-1, 2),
        word_ids=np.asarray(word_ids, dtype=np.int32),
        parents=np.asarray(pieces["parents"], dtype=np.int32),
    )


def _matrix(name: str, rows: Sequence[Any]) -> NDArray[Any]:
    if name == "ancestor":
        return np.asarray(rows, dtype=np.bool_)
    values = np.asarray(rows, dtype=np.uint16)
    fits = values.size == 0 or int(values.max()) <= np.iinfo(np.uint8).max
    return values.astype(np.uint8) if fits else values
