"""Examples that could not be used, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from featurestore.records import Drop, Transaction
from featurestore.tables.files import FileReader
from featurestore.tables.lookup import KeyLookup
from featurestore.tables.root import StoreRoot
from featurestore.tables.schema import DROPS
from syntax.fingerprint import fingerprint

_IDENTITY: Final = ("dataset", "tokenizer", "split", "lang", "example_key", "reason")
"""Fields that are equal in two drops that say the same."""


class DropTable:
    """Drops, as jobs append them."""

    def __init__(self, root: StoreRoot) -> None:
        self.table = root.table(DROPS, "drops")
        self._reader = FileReader(self.table.location)
        self._lookup = KeyLookup(self.table, self._reader, _IDENTITY)

    def append(self, drops: Sequence[Drop], transaction: Transaction | None = None) -> bool:
        """Append drops in one commit; ``False`` for none, and for an applied transaction."""
        if not drops:
            return False
        rows = pa.Table.from_pylist([asdict(drop) for drop in drops], schema=DROPS.schema)
        return self.table.append(rows, transaction)

    def append_new(self, drops: Sequence[Drop], transaction: Transaction | None = None) -> bool:
        """Append the drops that are new: each example and reason has one row."""
        distinct = {
            fingerprint([getattr(drop, name) for name in _IDENTITY]): drop for drop in drops
        }
        self._lookup.refresh()  # drops of deleted examples may have gone
        known = self._lookup.find(list(distinct)).found.tolist()
        new = [drop for drop, here in zip(distinct.values(), known, strict=True) if not here]
        return self.append(new, transaction)

    def of(
        self, dataset: str, tokenizer: str, split: str | None = None, lang: str | None = None
    ) -> list[Drop]:
        """The drops of a dataset, of one split and language or of all, in no special order."""
        wanted = {"dataset": dataset, "tokenizer": tokenizer, "split": split, "lang": lang}
        found: list[Drop] = []
        for file in self.table.snapshot().files:
            rows = self._reader.columns(file.path, DROPS.schema.names)
            for name, value in wanted.items():
                if value is not None:
                    rows = rows.filter(pc.equal(rows[name], value))
            found.extend(Drop(**row) for row in rows.to_pylist())
        return found
