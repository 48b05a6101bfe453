"""Trials of a store: its processes are killed, its files damaged, and then it is checked."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from featurestore import FeatureStore, open_store
from featurestore.maintenance.inspect import all_tables
from featurestore.maintenance.repair import repair_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.log import paths_of, read_actions
from syntax.errors import UnknownDatasetError

from .damages import empty, flip_bit, tear
from .writer_process import record_of
from .writers import Writer, Writers, assert_kept, raw_parses, wait_for

SIZE = 3
"""Records of a commit."""

CASTS = {
    "appends": ["append", "append", "compact"],
    "group commits": ["durable", "put", "compact"],
    "repeats": ["repeat", "repeat", "compact"],
    "examples": ["examples", "examples", "compact"],
    "readers": ["append", "read", "compact"],
    # The second deletes what the first wrote in an earlier round.
    "deletions": ["complete", "delete", "compact"],
}
"""Who is killed together."""

ROUNDS = 25
"""Rounds on one store."""


class Trials:
    """One store, and everything that was acknowledged about it."""

    def __init__(self, folder: Path, writers: Writers, seed: str) -> None:
        self.uri = folder / "store"
        self.parses: list[str] = []
        self.examples: list[str] = []
        self.deleted: set[str] = set()
        self._doubtful: set[str] = set()
        self._lost: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._writers = writers
        self._chance = random.Random(seed)
        self._number = 0

    def run(self, modes: Sequence[str]) -> None:
        """Begin processes and kill them at one moment, wherever they are."""
        self._number += 1
        started: dict[str, list[Writer]] = {mode: [] for mode in modes}
        for place, mode in enumerate(modes):
            # Those that repeat each other write the same keys again and again, and what deletes
            # needs the name of what wrote in the round before.
            shared = {"repeat": "same", "complete": f"{self._number}", "delete": self._before}
            name = shared.get(mode, f"{self._number}-{place}")
            started[mode].append(self._writers.start(mode, self.uri, name, 100_000, SIZE))
        if self._chance.random() < 0.5 and modes[0] not in ("compact", "vacuum"):
            wait_for(lambda: started[modes[0]][0].acknowledged)
        time.sleep(self._chance.uniform(0, 0.25))
        for mode, processes in started.items():
            for process in processes:
                process.kill()
            self.counts["kills"] += len(processes)
            self._note(mode, [key for process in processes for key in process.finish()])
        if "delete" in started:
            # The one that was being deleted may be there or not.
            self._doubtful |= {record_of(self._before, 0, row).key for row in range(SIZE)}
            self.parses = [key for key in self.parses if key not in self._doubtful]
            self.examples = [key for key in self.examples if key not in self._doubtful]

    @property
    def _before(self) -> str:
        return str(self._number - 1)

    def _note(self, mode: str, acknowledged: list[str]) -> None:
        if mode == "delete":
            self.deleted.update(acknowledged)
        if mode in ("examples", "complete"):
            self.examples.extend(acknowledged)
        if mode not in ("examples", "delete", "read"):
            self.parses.extend(acknowledged)

    def damage(self) -> str:
        """Damage a file, and repair the store; what it was, nothing if the store has none."""
        with open_store(self.uri) as store:
            tables = [(name, table) for name, table in all_tables(store) if table.snapshot().files]
        if not tables:
            return ""
        kind = self._chance.choice(["tear", "remove", "bit", "clear", "cut"])
        name, table = self._chance.choice(tables)
        folder = Path(table.location.uri)
        if kind in ("clear", "cut"):
            file = max((folder / "_delta_log").glob("*.json"))
            actions = read_actions(file.read_bytes())
            if paths_of(actions, "remove"):  # perhaps a deletion, which is undone
                self._lost |= self._doubtful
                self.deleted.clear()
            path = next(iter(paths_of(actions, "add")), "")
        else:
            path = self._chance.choice(table.snapshot().files).path
            file = folder / path
        held = keys_in(folder / path) if path else set()
        harms = {"remove": Path.unlink, "bit": self._flip, "clear": empty}
        harms.get(kind, tear)(file)
        with open_store(self.uri) as store:
            assert validate_store(store).problem_count
            planned = repair_store(store)
        with open_store(self.uri) as store:
            report = repair_store(store, dry_run=False)
            assert planned.to_json() == {**report.to_json(), "is_done": False}
        with open_store(self.uri) as store:
            assert validate_store(store).problem_count == 0
            # What a file or an entry had is lost; nothing else is.
            if name == "parses":
                gone = held - set(store.parses.get_many(sorted(held)))
                self.parses = [key for key in self.parses if key not in gone]
                self._lost |= gone
            else:
                gone = held - set(example_keys(store))
                self.examples = [key for key in self.examples if key not in gone]
        self.counts[f"{kind} of {name.split('/')[0]}"] += 1
        return f"{kind} {name} {path}"

    def _flip(self, file: Path) -> None:
        flip_bit(file, self._chance)

    def check(self, store: FeatureStore) -> None:
        """Every table is readable, and has what was acknowledged."""
        assert_kept(store, self.parses)
        keys = example_keys(store)
        assert set(self.examples) <= set(keys)
        assert len(keys) == len(set(keys))
        assert not self.deleted & {*keys, *store.parses.get_many(sorted(self.deleted))}
        if self.parses:  # examples that are written alone have none
            assert set(keys) <= self._lost | set(store.parses.get_many(keys))


def run_store(
    folder: Path, writers: Writers, cast: str, seed: str, damages: bool = False
) -> Trials:
    """Some rounds on a new store, of which each is checked; every fifth may damage a file."""
    trials = Trials(folder, writers, seed)
    with open_store(trials.uri) as reader:
        for number in range(1, ROUNDS + 1):
            did = cast
            try:
                trials.run(CASTS[cast])
                if number % 5 == 0:
                    # Alone: files out of use since a moment may belong to a commit under way.
                    trials.run(["vacuum"])
                    reader.parses.refresh()
                    trials.check(reader)
                    did = (damages and trials.damage()) or cast
                with open_store(trials.uri) as fresh:
                    trials.check(fresh)
            except BaseException:
                print(f"store {seed!r}, round {number}: {did}", file=sys.stderr)  # noqa: T201
                raise
    with open_store(trials.uri) as store:
        assert_settled(store, trials)
    return trials


def keys_in(file: Path) -> set[str]:
    """Keys of the rows of a data file."""
    rows = pq.ParquetFile(file)
    column = next((x for x in ("key", "example_key") if x in rows.schema_arrow.names), None)
    return set(rows.read([column])[column].to_pylist()) if column else set()


def example_keys(store: FeatureStore) -> list[str]:
    try:
        rows = store.dataset("written").columns(["example_key"])
    except UnknownDatasetError:
        return []
    return rows["example_key"].to_pylist()


def assert_settled(store: FeatureStore, trials: Trials) -> None:
    """After a compaction nothing is there twice; after a vacuum no file lies about."""
    store.compact()
    trials.check(store)
    assert not store.parses.has_repeats()
    assert raw_parses(store) == len(store.sql("select key from parses").fetchall())
    assert validate_store(store).problem_count == 0
    vacuum_store(store, older_than_hours=0)
    for path in Path(store.uri).rglob("*.parquet"):  # those of killed writers go after an hour
        os.utime(path, (time.time() - 7_200,) * 2)
    vacuum_store(store, older_than_hours=1)
    trials.check(store)
    for _, table in all_tables(store):
        active = {file.path for file in table.snapshot().files}
        folder = Path(table.location.uri)
        on_disk = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
        assert {path for path in on_disk if not path.startswith("_")} == active
