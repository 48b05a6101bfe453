"""Any one entry of a log may be damaged: deletions hold, and rows come back."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from featurestore import FeatureStore, ParseRecord, open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.repair import repair_store
from featurestore.maintenance.vacuum import vacuum_store


class History:
    """A store of parses under random changes, and which of them were the last of each key."""

    def __init__(self, store: FeatureStore, records: list[ParseRecord], seed: int) -> None:
        self.store, self.records, self.chance = store, records, random.Random(seed)
        self.log = Path(store.uri, "parses", "_delta_log")
        self.added: dict[str, list[int]] = {}
        self.deleted: dict[str, int] = {}

    @property
    def newest(self) -> int:
        return max(int(entry.stem) for entry in self.log.glob("*.json"))

    def append(self) -> None:
        some = self.chance.sample(self.records, self.chance.randint(1, 3))
        self.store.parses.append(some)
        for record in some:
            self.added.setdefault(record.key, []).append(self.newest)
            self.deleted.pop(record.key, None)

    def delete(self) -> None:
        if present := sorted(self.added.keys() - self.deleted.keys()):
            key = self.chance.choice(present)
            delete_parses(self.store, [key])
            self.deleted[key] = self.newest

    def lose_a_join(self) -> None:
        handle = DeltaTable(f"{self.store.uri}/parses")
        self.chance.choice([self.append, self.delete])()
        with suppress(CommitFailedError):
            handle.optimize.compact(target_size=1 << 20)

    def vacuum(self) -> None:
        vacuum_store(self.store, older_than_hours=0)

    def run(self) -> None:
        self.append()
        changes = [self.append, self.append, self.delete, self.store.compact, self.lose_a_join]
        for change in self.chance.choices([*changes, self.vacuum], k=self.chance.randint(3, 9)):
            change()
        self.store.close()

    def damage(self) -> int:
        """Empty an entry that no checkpoint stands in for, if there is one; its version."""
        checkpoints = (int(one.name[:20]) for one in self.log.glob("*.checkpoint.parquet"))
        start = max(checkpoints, default=0)
        number = self.chance.randint(min(start + 1, self.newest), self.newest)
        (self.log / f"{number:020d}.json").write_bytes(b"")
        return number


@pytest.mark.parametrize("seed", range(12))
def test_deletions_hold_and_rows_come_back(store, records, seed) -> None:
    history = History(store, records[:14], seed)
    history.run()
    number = history.damage()
    with open_store(store.uri) as opened:
        report = repair_store(opened, dry_run=False)
        found = set(opened.parses.get_many(list(history.added)))
    assert not {key for key in found if history.deleted.get(key, number) != number}
    lost = history.added.keys() - history.deleted.keys() - found
    # A key that was there before may have been deleted before its last append.
    assert all(history.added[key][-1] == number and len(history.added[key]) > 1 for key in lost)
    assert len(lost) <= report.left_out.get("parses", 0)
