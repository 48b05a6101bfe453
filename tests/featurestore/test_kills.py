"""Processes that write, compact, remove repeats and vacuum, killed at random points.

One store takes the blows of many trials. After each, who opens the store now must find every
record that was acknowledged, and now and then who had it open all along; at the end nothing is
there twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from featurestore import FeatureStore, open_store
from featurestore.maintenance.inspect import all_tables
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from syntax.errors import UnknownDatasetError

from .writers import Writer, Writers, assert_kept, raw_parses, wait_for

TRIALS = 25
"""Kills of writers and compactions on each of eight stores, beside five of a vacuum."""

CASTS = {
    "appends": ["append", "append", "compact"],
    "group commits": ["durable", "put", "compact"],
    "repeats": ["repeat", "repeat", "compact"],
    "examples": ["examples", "examples", "compact"],
}
"""Who is killed together."""


class Trials:
    """One store, and everything that was acknowledged about it."""

    def __init__(self, folder: Path, writers: Writers, seed: str) -> None:
        self.uri = folder / "store"
        self.parses: list[str] = []
        self.examples: list[str] = []
        self._writers = writers
        self._chance = random.Random(seed)
        self._number = 0

    def run(self, modes: Sequence[str]) -> None:
        """Begin processes and kill them at one moment, wherever they are."""
        self._number += 1
        started: dict[str, list[Writer]] = {mode: [] for mode in modes}
        for place, mode in enumerate(modes):
            # Those that repeat each other write the same keys again and again.
            name = "same" if mode == "repeat" else f"{self._number}-{place}"
            started[mode].append(self._writers.start(mode, self.uri, name, 100_000, 3))
        if self._chance.random() < 0.5 and modes[0] not in ("compact", "vacuum"):
            wait_for(lambda: started[modes[0]][0].acknowledged)
        time.sleep(self._chance.uniform(0, 0.25))
        for mode, processes in started.items():
            for process in processes:
                process.kill()
            acknowledged = [key for process in processes for key in process.finish()]
            (self.examples if mode == "examples" else self.parses).extend(acknowledged)

    def check(self, store: FeatureStore) -> None:
        """Every table is readable, and has what was acknowledged."""
        assert_kept(store, self.parses)
        assert set(self.examples) <= set(example_keys(store))


def example_keys(store: FeatureStore) -> list[str]:
    try:
        rows = store.dataset("written").columns(["example_key"])
    except UnknownDatasetError:
        return []
    return rows["example_key"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cast", list(CASTS))
def test_nothing_acknowledged_is_lost(tmp_path, writers, cast, seed) -> None:
    trials = Trials(tmp_path, writers, f"{cast} {seed}")
    with open_store(trials.uri) as reader:
        for number in range(1, TRIALS + 1):
            trials.run(CASTS[cast])
            if number % 5 == 0:
                # Alone: files that went out of use a moment ago may belong to a commit under way.
                trials.run(["vacuum"])
                trials.check(reader)
            with open_store(trials.uri) as fresh:
                trials.check(fresh)
    with open_store(trials.uri) as store:
        assert len(trials.parses) + len(trials.examples) > TRIALS
        assert_settled(store, trials)


def assert_settled(store: FeatureStore, trials: Trials) -> None:
    """After a compaction nothing is there twice; after a vacuum no file lies about."""
    store.compact()
    trials.check(store)
    assert not store.parses.has_repeats()
    assert raw_parses(store) == len(store.sql("select key from parses").fetchall())
    assert validate_store(store).problem_count == 0
    vacuum_store(store, older_than_hours=0)
    trials.check(store)
    for _, table in all_tables(store):
        active = {file.path for file in table.snapshot().files}
        folder = Path(table.location.uri)
        on_disk = {path.relative_to(folder) for path in folder.rglob("*.parquet")}
        assert {str(path) for path in on_disk if "_delta_log" not in path.parts} == active


@pytest.mark.slow
def test_a_process_killed_in_mid_compaction_leaves_every_row(tmp_path, writers) -> None:
    trials = Trials(tmp_path, writers, "a few")
    with open_store(trials.uri) as store:
        for modes in (CASTS["repeats"], ["examples", "compact"], ["vacuum"]):
            trials.run(modes)
            trials.check(store)
        assert_settled(store, trials)
