"""The columns of every table; a change here is a change of the store's format."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from featurestore.tables.layout import TableLayout
from syntax.trees.parse import WORD_COLUMNS

_STRINGS: Final = pa.list_(pa.string())
_INTEGERS: Final = pa.list_(pa.int32())

WORD_STRINGS: Final = tuple(name for name in WORD_COLUMNS if name != "head")

PARSE_INTEGERS: Final = (
    *("head", "word_start", "word_end"),
    *("token_start", "token_end", "token_first_word"),
    *("sentence_start", "sentence_end", "sentence_first_word"),
)

_ABOUT_PARSES: Final = {
    "key": "32 hexadecimal digits: hash of parser, language, mode and text",
    "lang": "Language of the text, as ISO 639",
    "parser": "Fingerprint of the parser; the table fingerprints says what it is",
    "mode": "How the text was read: raw, sentence, pretokenized, tokens_mwt, retokenize or gold",
    "text": "The text exactly as received; all offsets count its characters from 0",
    "form": "CoNLL-U's FORM of each word of the text, sentence after sentence",
    "lemma": "LEMMA of each word; null where the parser gave none",
    "upos": "UPOS of each word, a universal part-of-speech tag",
    "xpos": "XPOS of each word, a tag of the treebank; null where the parser gave none",
    "feats": "FEATS of each word as Name=Value|...; null where the parser gave none",
    "deprel": "DEPREL of each word, its relation to its head",
    "misc": "MISC of each word; null where there is none",
    "head": "HEAD of each word: the head's number in its sentence from 1, 0 at the root",
    "word_start": "First character of each word in the text",
    "word_end": "End of each word in the text (exclusive)",
    "token_start": "First character of each surface token",
    "token_end": "End of each surface token (exclusive)",
    "token_first_word": "First word of each token, from 0; a multiword token covers several",
    "sentence_start": "First character of each sentence",
    "sentence_end": "End of each sentence (exclusive)",
    "sentence_first_word": "First word of each sentence, from 0",
    "record": "The parse once more, packed, which Parsebank reads",
}

PARSES: Final = TableLayout(
    schema=pa.schema(
        [
            *((name, pa.string()) for name in ("key", "lang", "parser", "mode", "text")),
            *((name, _STRINGS) for name in (*WORD_STRINGS, "misc")),
            *((name, _INTEGERS) for name in PARSE_INTEGERS),
            ("record", pa.binary()),
        ]
    ),
    plain=("key", "text", "record"),
    hidden=("record",),
    nullable=("misc",),
    description="Parsebank's parses: one row per text, parser, language and mode",
    comments=_ABOUT_PARSES,
)
"""``record`` has all of a parse but its key (`encode.packed`)."""

PARSE_COLUMNS: Final = tuple(name for name in PARSES.schema.names if name != "record")

VECTORS: Final = {
    "input_ids": "int32",
    "head": "int32",
    "word_ids": "int32",
    "upos": "uint8",
    "deprel": "uint8",
    "sentence_ids": "int32",
    "offsets": "int32",
}
"""Per-piece vectors and their little-endian dtypes; ``offsets`` has two numbers per piece."""

MATRIX_BLOBS: Final = ("distance", "depth", "ancestor")

TOKENS: Final = ("token_counts", "token_offsets")
"""The tokens that a dataset brought: how many for each segment, 0 for running text, null where
they were not recorded; and the starts and ends of all of them in their segments' texts, int32."""

EXAMPLE_COLUMNS: Final = (
    ("split", pa.string()),
    ("lang", pa.string()),
    ("seq", pa.int64()),
    ("example_id", pa.string()),
    ("example_key", pa.string()),
    ("parser", pa.string()),
    ("texts", _STRINGS),
    ("parse_keys", _STRINGS),
    ("segment_lengths", _INTEGERS),
    *((name, pa.binary()) for name in VECTORS),
    *((name, pa.list_(pa.binary())) for name in MATRIX_BLOBS),
    *zip(TOKENS, (_INTEGERS, pa.binary()), strict=True),
)

NULLABLE_EXAMPLE_COLUMNS: Final = (*MATRIX_BLOBS, *TOKENS)

ABOUT_EXAMPLES: Final = {
    "split": "Split of the dataset",
    "lang": "Language, as ISO 639",
    "seq": "Position of the example in its split; unshuffled streams follow it",
    "example_id": "Name of the example in its dataset",
    "example_key": "32 hexadecimal digits: hash of everything the row was made from",
    "parser": "Fingerprint of the parser; the table fingerprints says what it is",
    "texts": "Text of each segment, such as premise and hypothesis",
    "parse_keys": "Key of each segment's row in the table parses",
    "segment_lengths": "Number of wordpieces of each segment; vectors hold segment after segment",
    "input_ids": "Ids of the wordpieces, without special tokens; little-endian int32",
    "head": "Parent of each piece in its segment from 0; -1 at a root, -2 without a word; int32",
    "word_ids": "Word of each piece in its segment from 0; -1 without a word; int32",
    "upos": "Universal tag of each piece's word, uint8; see syntax.trees.ud",
    "deprel": "Universal relation of each piece's word, uint8; see syntax.trees.ud",
    "sentence_ids": "Sentence of each piece in its segment from 0; int32",
    "offsets": "Start and end of each piece in its segment's text; int32, two numbers a piece",
    "distance": "Tree distances of each segment's pieces, L x L uint8 or uint16; maximum: no path",
    "depth": "Depth of each segment's pieces, L numbers of the same type",
    "ancestor": "[i, j]: piece j is i or its ancestor; L rows of bits, the first in the lowest bit",
    "token_counts": "Tokens that the dataset brought for each segment; 0 for running text",
    "token_offsets": "Start and end of these tokens in their segments' texts; int32",
}

LABEL_TYPES: Final = {
    "class": pa.string(),
    "float": pa.float32(),
    "string": pa.string(),
    "tags": _STRINGS,
    "spans": pa.list_(
        pa.struct({"start_char": pa.int32(), "end_char": pa.int32(), "label": pa.string()})
    ),
}

DROPS: Final = TableLayout(
    schema=pa.schema(
        (name, pa.string())
        for name in (
            *("dataset", "tokenizer", "split", "lang", "job"),
            *("example_id", "example_key", "reason", "message"),
        )
    ),
    description="Examples that Parsebank could not use, and why",
    comments={
        "dataset": "Name of the dataset",
        "tokenizer": "Fingerprint of the tokenizer",
        "split": "Split of the dataset",
        "lang": "Language, as ISO 639",
        "job": "The job or command that dropped the example",
        "example_id": "Name of the example in its dataset",
        "example_key": "Key of the example; empty if the reader rejected it before it had one",
        "reason": "Name of the reason, an error_type",
        "message": "The reason for people",
    },
)

FINGERPRINTS: Final = TableLayout(
    schema=pa.schema(
        [("fingerprint", pa.string()), ("kind", pa.string()), ("content", pa.string())]
    ),
    description="What the fingerprints of the other tables stand for",
    comments={
        "fingerprint": "32 hexadecimal digits: hash of the content or of what it describes",
        "kind": "parser, tokenizer, split or report",
        "content": "The description as JSON",
    },
)

PINS: Final = TableLayout(
    schema=pa.schema(
        [
            *(("name", pa.string()), ("table", pa.string()), ("version", pa.int64())),
            *(("by", pa.string()), ("until", pa.string())),
            *(("kept", pa.bool_()), ("at", pa.int64())),
        ]
    ),
    description="Versions of datasets that a vacuum keeps: what was pinned and unpinned, in order",
    comments={
        "name": "Name of the pin",
        "table": "Folder of the dataset's table below datasets",
        "version": "Version of that table",
        "by": "Who needs it",
        "until": "When a lease ends, as ISO 8601 in UTC; empty for a pin, which stays",
        "kept": "Whether it was pinned or unpinned",
        "at": "Order of the rows; nanoseconds since 1970",
    },
)
"""``at`` orders the rows as they were committed: the time in nanoseconds since 1970, or one more
than any before where the clock is behind."""
