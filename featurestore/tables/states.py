"""States of a frozen encoder for the words of a dataset's examples, in a table beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.tables.card import DatasetCard
from featurestore.tables.delta import Table
from featurestore.tables.encode.columns import (
    binary_column,
    list_column,
    list_parts,
    numpy_of,
    offsets_of,
)
from featurestore.tables.files import FileReader
from featurestore.tables.index import Keys
from featurestore.tables.layout import TableLayout
from featurestore.tables.lookup import KeyLookup, group_by_file
from featurestore.tables.root import StoreRoot
from syntax.errors import SpecError, UnknownKeyError

FOLDER: Final = "states"

STATES: Final = TableLayout(
    schema=pa.schema(
        [
            ("example_key", pa.string()),
            ("words", pa.list_(pa.int32())),
            ("states", pa.binary()),
        ]
    ),
    plain=("example_key", "states"),
    description="Parsebank's states of words from a frozen encoder: one row per example",
    comments={
        "example_key": "Key of the example in its dataset's table",
        "words": "Number of words of each segment",
        "states": "Their states, little-endian float16, one word after another",
    },
    properties={"parsebank.states": "float16"},
)

ROW_GROUP_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class WordStates:
    """States of one example's words.

    Attributes:
        words: Words of each segment. *Shape:* (S,), int32.
        states: Of all of them, segment after segment. *Shape:* (sum of ``words``, D), float16.
    """

    words: NDArray[np.int32]
    states: NDArray[np.float16]


class StatesTable:
    """One encoder's states for one dataset; append-only, found by example key.

    Args:
        identity: Fingerprint of encoder, layer and everything else that the states depend on.
        width: Numbers of a state.
    """

    def __init__(self, root: StoreRoot, card: DatasetCard, identity: str, width: int) -> None:
        self.identity, self.width = identity, width
        self.table = root.table(STATES, FOLDER, card.name, card.folder, identity[:16])
        self._reader = FileReader(self.table.location)
        self._lookup = KeyLookup(self.table, self._reader, "example_key")

    def holds(self, keys: Keys) -> NDArray[np.bool_]:
        """Mask of the examples that have states. *Shape:* (N, 2) to (N,)."""
        return self._lookup.find(_digits(keys)).found

    def append(self, keys: Keys, examples: Sequence[WordStates]) -> None:
        if not examples:
            return
        for one in examples:
            expected = (int(one.words.sum()), self.width)
            if one.states.shape != expected or one.states.dtype != np.float16:
                raise SpecError(
                    f"states of shape {one.states.shape} and dtype {one.states.dtype} came; "
                    f"expected {expected} and float16"
                )
        numbers = np.concatenate([one.states.reshape(-1) for one in examples])
        words = np.concatenate([one.words for one in examples]).astype(np.int32)
        rows = pa.table(
            [
                pa.array(_digits(keys)),
                list_column([len(one.words) for one in examples], pa.array(words)),
                binary_column(offsets_of(one.states.size for one in examples), numbers),
            ],
            schema=STATES.schema,
        )
        row_group = max(1, ROW_GROUP_BYTES * len(examples) // max(1, numbers.nbytes))
        self.table.append(rows, row_group=row_group)
        self._lookup.expire()

    def read(self, keys: Keys) -> list[WordStates]:
        addresses = self._lookup.find(_digits(keys))
        if not addresses.found.all():
            missing = _digits(keys[~addresses.found])
            raise UnknownKeyError(
                f"{len(missing)} examples have no states in {self.table.location.uri}, the first "
                f"is {missing[0]}; compute them again",
                keys=missing[:10],
            )
        found: dict[int, WordStates] = {}
        for file, positions in group_by_file(addresses):
            rows = addresses.row[positions]
            names = ("words", "states")
            table = self._reader.rows(self._lookup.path(file), rows, names)
            found.update(zip(positions.tolist(), self._decoded(table), strict=True))
        return [found[position] for position in range(len(keys))]

    def _decoded(self, table: pa.Table) -> Iterator[WordStates]:
        bounds, words = list_parts(table["words"])
        counts = np.split(numpy_of(words).astype(np.int32), bounds[1:-1])
        for own, blob in zip(counts, table["states"], strict=True):
            numbers = np.frombuffer(blob.as_buffer(), "<f2").astype(np.float16, copy=False)
            yield WordStates(own, numbers.reshape(-1, self.width))


def states_tables(root: StoreRoot) -> Iterator[tuple[str, Table]]:
    """Every table of states by its path below the store."""
    top = root.location.child(FOLDER)
    for name in top.folders():
        for tokenizer in top.child(name).folders():
            for identity in top.child(name, tokenizer).folders():
                path = (FOLDER, name, tokenizer, identity)
                yield "/".join(path), root.table(STATES, *path)


def _digits(keys: Keys) -> list[str]:
    pairs: list[Any] = keys.tolist()
    return [f"{high:016x}{low:016x}" for high, low in pairs]
