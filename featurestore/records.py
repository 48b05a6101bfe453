"""Rows, handles and transactions of the store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.examples import DatasetSpec, LabelValue
from syntax.trees.parse import Parse

if TYPE_CHECKING:
    from syntax.batches import SegmentFeatures, SpecialTokens

_HEXADECIMAL: Final = re.compile("[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class ParseRecord:
    """One row of the parse cache.

    Attributes:
        key: Fingerprint of parser, language, mode and text; 32 hexadecimal digits.
        parser: Fingerprint of the parser.
    """

    key: str
    lang: str
    parser: str
    mode: str
    parse: Parse


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """One row of a dataset table: the features of one benchmark example.

    Attributes:
        seq: Position of the example in its split; it gives the order of unshuffled streams.
        example_key: Fingerprint of everything the row was made from; 32 hexadecimal digits.
        parser: Fingerprint of the parser.
        segments: Features of each segment, untruncated, without special tokens.
        tokens: Start and end, in each segment's text, of the tokens that the dataset brought; none
            for a segment of running text. Left out where they are unknown. *Shape:* (T, 2) each.
    """

    seq: int
    example_id: str
    example_key: str
    parser: str
    texts: tuple[str, ...]
    parse_keys: tuple[str, ...]
    segments: tuple[SegmentFeatures, ...]
    labels: Mapping[str, LabelValue | None] = field(default_factory=dict)
    tokens: tuple[NDArray[np.int32], ...] = ()


@dataclass(frozen=True, slots=True)
class Drop:
    """An example that could not be used, and why.

    Attributes:
        reason: An ``error_type``.
        example_key: Empty when the reader rejected the example before it had a key.
    """

    dataset: str
    tokenizer: str
    split: str
    lang: str
    job: str
    example_id: str
    example_key: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """Names one append, so that it lands exactly once however often it is tried.

    Attributes:
        app_id: The writer, such as a job's shard.
        version: Grows with each append of the same ``app_id``; an append whose version is not
            above the last one applied is skipped.
    """

    app_id: str
    version: int = 1


@dataclass(frozen=True)
class DatasetHandle:
    """The dataset table and partition of new rows; the table is created when missing.

    Attributes:
        matrices: Distance, depth and ancestor matrices are stored beside the vectors.
    """

    spec: DatasetSpec
    tokenizer: str
    tokenizer_fingerprint: str
    special_tokens: SpecialTokens
    matrices: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a dataset and its number of rows."""

    split: str
    lang: str
    rows: int


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A dataset table as ``store.datasets()`` lists it."""

    name: str
    tokenizer: str
    tokenizer_fingerprint: str
    version: int
    fields: tuple[str, ...]
    labels: tuple[str, ...]
    parts: tuple[Part, ...]

    def to_json(self) -> dict[str, Any]:
        parts = [{"split": p.split, "lang": p.lang, "rows": p.rows} for p in self.parts]
        return {
            "name": self.name,
            "tokenizer": {"name": self.tokenizer, "fingerprint": self.tokenizer_fingerprint},
            "version": self.version,
            "fields": list(self.fields),
            "labels": list(self.labels),
            "parts": parts,
        }


def key_bytes(keys: list[str]) -> bytes:
    """The 16 bytes of each key, one after the other."""
    joined = "".join(keys)
    try:
        digests = bytes.fromhex(joined)
    except ValueError:
        digests = b""
    # There and back is a quicker check than a pattern: capitals and blanks would be let in.
    if digests.hex() != joined or not set(map(len, keys)) <= {32}:
        bad = next(key for key in keys if len(key) != 32 or not _HEXADECIMAL.fullmatch(key))
        raise SpecError(
            f"{bad!r} is not a key; keys have 32 lower-case hexadecimal digits", key=bad
        )
    return digests
