"""The columns of every table; a change here is a change of the store's format."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from featurestore.tables.layout import TableLayout

_STRINGS: Final = pa.list_(pa.string())
_INTEGERS: Final = pa.list_(pa.int32())

WORD_STRINGS: Final = ("form", "lemma", "upos", "xpos", "feats", "deprel")
"""Columns of a parse with one string per word; ``misc`` is one too, where the parser gave it."""

PARSE_INTEGERS: Final = (
    *("head", "word_start", "word_end"),
    *("token_start", "token_end", "token_first_word"),
    *("sentence_start", "sentence_end", "sentence_first_word"),
)
"""Columns of a parse with one integer per word, token or sentence."""

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
    format=2,
)
"""``record`` has all of a parse but key and text (`encode.packed`); null in rows of format 1."""

PARSE_COLUMNS: Final = tuple(name for name in PARSES.schema.names if name != "record")
"""What a parse can be read from, packed or not."""

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
"""Columns with one blob per segment."""

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
"""Columns of every dataset table, before its own label columns."""

LABEL_TYPES: Final = {
    "class": pa.string(),
    "float": pa.float32(),
    "string": pa.string(),
    "tags": _STRINGS,
    "spans": pa.list_(
        pa.struct({"start_char": pa.int32(), "end_char": pa.int32(), "label": pa.string()})
    ),
}
"""Column type of each label kind; names are stored as such, which SQL can read."""

DROPS: Final = TableLayout(
    schema=pa.schema(
        (name, pa.string())
        for name in (
            *("dataset", "tokenizer", "split", "lang", "job"),
            *("example_id", "example_key", "reason", "message"),
        )
    )
)

FINGERPRINTS: Final = TableLayout(
    schema=pa.schema(
        [("fingerprint", pa.string()), ("kind", pa.string()), ("content", pa.string())]
    )
)

PINS: Final = TableLayout(
    schema=pa.schema(
        [
            *(("name", pa.string()), ("table", pa.string()), ("version", pa.int64())),
            *(("by", pa.string()), ("kept", pa.bool_()), ("at", pa.int64())),
        ]
    )
)
"""What was pinned (``kept``) and unpinned; ``at`` orders the rows as they were committed: the time,
in nanoseconds since 1970, or one more than any before where the clock is behind."""
