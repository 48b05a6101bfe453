"""Pipeline answers as JSON, built from plain lists: validation of every word would cost more."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from pydantic import TypeAdapter

from service.errors import error_body
from service.parsers import ParserIdentity
from service.parsers.surface import is_continued
from service.pipeline.records import FeatureAnswer, ItemFeatures, MadeBy
from service.tokenizers import LoadedTokenizer
from syntax import Parse
from syntax.errors import ParsebankError
from syntax.trees.parse import WORD_COLUMNS

dump: Final = TypeAdapter(dict[str, Any]).dump_json

_WORD: Final = ("id", *WORD_COLUMNS, "start_char", "end_char", "misc")


def render_json(answer: FeatureAnswer) -> bytes:
    """A `service.schemas.ParseAnswer`."""
    items = [item_content(item) for item in answer.items]
    return dump({**makers(answer.parser, answer.tokenizer), "items": items})


def makers(parser: ParserIdentity | MadeBy, tokenizer: LoadedTokenizer | None) -> dict[str, Any]:
    return {
        "parser": {"name": parser.name, "fingerprint": parser.fingerprint},
        "tokenizer": tokenizer and {"name": tokenizer.name, "fingerprint": tokenizer.fingerprint},
    }


def item_content(item: ItemFeatures | ParsebankError) -> dict[str, Any]:
    """A `service.schemas.ItemAnswer` or `FailedItem`."""
    if isinstance(item, ParsebankError):
        return {"error": error_body(item)}
    content: dict[str, Any] = {
        "key": item.key,
        "cached": item.cached,
        "text": item.parse.text,
        "sentences": _sentences(item.parse),
    }
    if item.token_words is not None:
        content["token_words"] = item.token_words
    if item.word_labels is not None:
        content["word_labels"] = item.word_labels
    if item.pieces is not None:
        pieces = item.pieces
        content["wordpieces"] = {
            "input_ids": pieces.input_ids.tolist(),
            "offset_mapping": pieces.offsets.tolist(),
            "word_ids": [None if word < 0 else word for word in pieces.word_ids.tolist()],
            "parents": pieces.parents.tolist(),
        }
    if item.matrices:
        content["matrices"] = {name: matrix.tolist() for name, matrix in item.matrices.items()}
    return content


def _sentences(parse: Parse) -> list[dict[str, Any]]:
    return [
        {
            "start_char": parse.sentence_start[index],
            "end_char": parse.sentence_end[index],
            "text": surface.text,
            **({"continues": True} if is_continued(parse, first) else {}),
            "tokens": _tokens(parse, first, end),
            "words": _words(parse, first, end, surface.word_misc),
        }
        for index, ((first, end), surface) in enumerate(
            zip(parse.word_ranges(), parse.surfaces(), strict=True)
        )
    ]


def _words(parse: Parse, first: int, end: int, misc: Sequence[str | None]) -> list[dict[str, Any]]:
    """The words of one sentence, numbered from 1."""
    columns = (getattr(parse, name) for name in (*WORD_COLUMNS, "word_start", "word_end"))
    rows = zip(count(1), *(column[first:end] for column in columns), misc, strict=False)
    return [dict(zip(_WORD, row, strict=True)) for row in rows]


def _tokens(parse: Parse, first: int, end: int) -> list[dict[str, Any]]:
    starts = parse.token_first_word
    among = range(bisect_left(starts, first), bisect_left(starts, end))
    ends = [*starts[among.start + 1 : among.stop], end]
    part = slice(among.start, among.stop)
    spans = zip(parse.token_start[part], parse.token_end[part], ends, strict=True)
    return [
        {
            "form": parse.text[start_char:end_char],
            "start_char": start_char,
            "end_char": end_char,
            "word_ids": list(range(starts[index] - first + 1, end_word - first + 1)),
        }
        for index, (start_char, end_char, end_word) in zip(among, spans, strict=True)
    ]
