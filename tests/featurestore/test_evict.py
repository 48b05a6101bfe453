"""The parse cache within a bound: the oldest go, what examples need stays."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from featurestore import open_store
from featurestore.maintenance.evict import _Examples, _restore, evict_parses
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.delta import JOIN_EVERY
from featurestore.tables.files import FileGoneError
from syntax.errors import SpecError

from .writer_process import HANDLE, example_of, record_of


def fill(store, groups: int = 6, size: int = 200) -> list[list]:
    """Groups of parses, one file each, the oldest first."""
    made = [[record_of("old", group, row) for row in range(size)] for group in range(groups)]
    for group in made:
        store.parses.append(group)
        time.sleep(0.002)  # files tell their age in milliseconds
    return made


def size_of(store) -> int:
    (parses,) = (table for table in inspect_store(store) if table.table == "parses")
    return parses.size


def held(uri, records) -> list[str]:
    """Those of the records that a store has, to who opens it now."""
    with open_store(uri) as store:
        return list(store.parses.get_many([record.key for record in records]))


def keys_of(records) -> list[str]:
    return [record.key for record in records]


def test_evict_deletes_the_oldest_until_the_bound_holds(store) -> None:
    groups = fill(store)
    before = size_of(store)
    bound = int(0.6 * before)
    report = evict_parses(store, bound, spare_hours=0)
    assert (report.bytes_before, report.bytes_after) == (before, size_of(store))
    assert report.bytes_after <= bound
    assert (report.rows_before, report.needed) == (1200, 0)
    everything = [record for group in groups for record in group]
    left = held(store.uri, everything)
    keys, end = keys_of(everything), 200 * -(-report.evicted // 200)
    last = keys[end - 200 : end]  # of one file the last rows go first, as those of a join do
    assert left == last[: end - report.evicted] + keys[end:]
    assert 400 < report.evicted < 700


@pytest.mark.slow
@pytest.mark.parametrize("groups", [JOIN_EVERY - 10, JOIN_EVERY], ids=["compacted", "by writers"])
def test_evict_deletes_the_oldest_of_files_that_were_joined(store, groups) -> None:
    made = fill(store, groups, size=20)
    if groups < JOIN_EVERY:
        store.compact()
    assert len(store.parses.table.snapshot().files) < groups / 2
    report = evict_parses(store, size_of(store) // 2, spare_hours=0)
    left = set(held(store.uri, [record for group in made for record in group]))
    whole = [group for group, members in enumerate(made) if left.issuperset(keys_of(members))]
    assert whole == list(range(groups - len(whole), groups))
    assert len(left) - 20 < 20 * len(whole) <= len(left) == 20 * groups - report.evicted
    assert report.evicted > 5 * groups


def test_evict_keeps_parses_that_examples_need(store) -> None:
    groups = fill(store)
    needed, pinned = groups[0][:50], groups[1][:50]
    store.features.append(HANDLE, [example_of(record, n) for n, record in enumerate(pinned)])
    store.dataset("written").pin("paper")
    # The newest version has other examples than the pinned one.
    store.features.append(HANDLE, [example_of(record, 100 + n) for n, record in enumerate(needed)])
    store.features.tables()[0][1].delete("example_key", keys_of(pinned))
    assert len(store.dataset("written")) == 50
    report = evict_parses(store, 0, spare_hours=0)
    assert (report.needed, report.evicted) == (100, 1100)
    everything = [record for group in groups for record in group]
    assert sorted(held(store.uri, everything)) == sorted(keys_of(needed + pinned))
    assert report.bytes_after > 0
    store.pins.remove("paper")
    assert evict_parses(store, 0, spare_hours=0).evicted == 50
    assert sorted(held(store.uri, everything)) == sorted(keys_of(needed))
    assert validate_store(store).problem_count == 0


def test_a_pin_whose_files_are_gone_is_named(store) -> None:
    parses = [record for group in fill(store, groups=2) for record in group]
    store.features.append(HANDLE, [example_of(parses[0], 0)])
    data = store.dataset(HANDLE.spec.name)
    data.pin("paper")
    store.features.append(HANDLE, [example_of(parses[1], 1)])
    Path(data.reader.location.uri, data.rows.paths[0]).unlink()
    with pytest.raises(FileGoneError, match=r"the pin 'paper' .* `parsebank store unpin paper`"):
        evict_parses(store, 0, spare_hours=0)


def test_evict_does_nothing_within_the_bound(store) -> None:
    assert evict_parses(store, 0, spare_hours=0).evicted == 0
    fill(store, groups=2)
    version = store.parses.table.snapshot().version
    assert evict_parses(store, size_of(store), spare_hours=0).evicted == 0
    assert store.parses.table.snapshot().version == version


def test_dry_run_reports_what_evict_would_delete(store) -> None:
    groups = fill(store)
    bound = size_of(store) // 2
    planned = evict_parses(store, bound, dry_run=True, spare_hours=0)
    assert held(store.uri, groups[0]) == keys_of(groups[0])
    assert planned.bytes_after <= bound
    done = evict_parses(store, bound, spare_hours=0)
    assert done.evicted >= planned.evicted > 0


def test_evict_deletes_repeated_rows_together(store) -> None:
    (group,) = fill(store, groups=1)
    store.parses.append(group)
    report = evict_parses(store, 0, spare_hours=0)
    assert (report.rows_before, report.evicted) == (400, 200)
    assert held(store.uri, group) == []


def test_evict_spares_young_parses(store) -> None:
    fill(store, groups=1)
    assert evict_parses(store, 0).evicted == 0
    assert evict_parses(store, 0, dry_run=True).evicted == 0
    # A file tells its age in milliseconds, and any age above none spares this moment's.
    assert evict_parses(store, 0, spare_hours=1e-9).evicted == 200


def test_evict_restores_parses_that_a_concurrent_append_needs(store) -> None:
    """A job found old parses in the cache; its examples come after the eviction looked for them."""
    groups = fill(store)
    everything = [record for group in groups for record in group]
    taken = groups[0][:20]
    examples = _Examples(store)
    assert len(examples.new_keys()) == 0
    version = store.parses.table.snapshot().version
    store.parses.table.delete("key", keys_of(groups[0]))
    store.features.append(HANDLE, [example_of(record, n) for n, record in enumerate(taken)])
    assert _restore(store, version, keys_of(groups[0]), examples.new_keys()) == 20
    assert held(store.uri, everything) == keys_of(taken) + keys_of(everything)[200:]
    assert evict_parses(store, 0, spare_hours=0).needed == 20


def test_keep_restores_evicted_records(store) -> None:
    """A service answers from memory, and stores examples of parses that went long ago."""
    (group,) = fill(store, groups=1)
    known = [*store.parses.get_many(keys_of(group)).values()]
    with open_store(store.uri) as other:
        assert evict_parses(other, 0, spare_hours=0).evicted == 200
    assert len(store.parses.get_many(keys_of(group))) == 200
    store.parses.keep(known[:20])
    assert held(store.uri, group) == keys_of(group)[:20]
    version = store.parses.table.snapshot().version
    store.parses.keep(known[:20])
    assert store.parses.table.snapshot().version == version


@pytest.mark.slow
def test_evict_runs_beside_readers_and_writers(store, writers) -> None:
    groups = fill(store)
    everything = [record for group in groups for record in group]
    with open_store(store.uri, cache_items=0) as reader:
        assert len(reader.parses.get_many(keys_of(everything))) == 1200
        writer = writers.start("append", store.uri, "w", 5, 20)
        bound = size_of(store) // 2
        evict_parses(store, bound, spare_hours=0)
        acknowledged = writer.finish()
        # What went out of use can be read until it is vacuumed.
        assert len(reader.parses.get_many(keys_of(everything))) == 1200
        vacuum_store(store, older_than_hours=0)
        reader.parses._reader.close()  # or it would read on in files that it has open
        left = held(store.uri, everything)
        assert list(reader.parses.get_many(keys_of(everything))) == left
        assert set(reader.parses.get_many(acknowledged)) == set(acknowledged)
        assert not reader.parses.contains(keys_of(groups[0])).any()
    assert len(acknowledged) == 100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one of them"),
        (["--max-gb", "1", "--max-bytes", "5"], "one of them"),
        (["--max-gb", "inf"], "--max-gb"),
        (["--max-gb", "nan"], "--max-gb"),
    ],
)
def test_evict_command_takes_one_bound(store, run, words, said) -> None:
    refused = run("evict", *words)
    assert (refused.exit_code, said in refused.output) == (2, True)
    with pytest.raises(SpecError, match="must not be negative"):
        evict_parses(store, -1, spare_hours=0)


def test_evict_command_reports_and_deletes(store, run) -> None:
    fill(store, groups=2)
    command = ("evict", "--spare-hours", "0", "--json")
    (report,) = json.loads(run(*command, "--max-bytes", "0", "--dry-run").output)
    assert report["evicted"] == 400
    (report,) = json.loads(run(*command, "--max-gb", "0.001").output)
    assert (report["max_bytes"], report["evicted"]) == (1_000_000, 0)
    (report,) = json.loads(run(*command, "--max-bytes", "0").output)
    assert (report["evicted"], report["bytes_after"]) == (400, 0)
