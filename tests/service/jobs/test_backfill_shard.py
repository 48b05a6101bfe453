"""`run_shard` alone: what a try leaves behind, and what the next one makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from featurestore import ParseRecord, open_store
from featurestore.maintenance.evict import evict_parses
from service.jobs.records import Counts
from service.jobs.shard import run_shard
from service.jobs.staging import StagedLine

from .bench import Bench, Recorder, make_bench
from .conftest import pair, pairs


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with open_store(tmp_path) as store:
        yield make_bench(tmp_path, store)


ITEMS = [
    *pairs(6),
    pair(6, first=" "),
    {"rejected": {"example_id": "r", "reason": "x", "message": ""}},
]
COUNTS = Counts(8, stored=6, dropped={"empty_text": 1, "example": 1}, parsed=9, reused=3)


def parsed(bench: Bench, lines: list[StagedLine], folder: Path) -> list[ParseRecord]:
    """The parses of lines, made in a store of their own."""
    with open_store(folder / "other") as other:
        run_shard(bench.shard(), lines, replace(bench.tools(), store=other), Recorder())
        keys = [row[0] for row in other.sql("select key from parses").fetchall()]
        return list(other.parses.get_many(keys).values())


def test_announced_counts_equal_the_commits(bench: Bench) -> None:
    signals = Recorder()
    counts = run_shard(bench.shard(), bench.lines(ITEMS), bench.tools(), signals)
    assert counts == COUNTS
    assert signals.plans == [COUNTS]
    assert [bench.size(table) for table in ("parses", "examples", "drops")] == [9, 6, 2]
    assert signals.watched[-1] == ()
    assert len(set(signals.watched)) == 10
    assert signals.beats >= 9


def test_a_try_after_all_commits_writes_nothing_and_counts_the_same(bench: Bench) -> None:
    lines = bench.lines(ITEMS)
    run_shard(bench.shard(), lines, bench.tools(), Recorder())
    signals = Recorder()
    again = run_shard(bench.shard(plan=COUNTS), lines, bench.tools(), signals)
    assert again == COUNTS
    assert signals.beats >= 2  # sorted, about to commit: either may take long
    assert [bench.size(table) for table in ("parses", "examples", "drops")] == [9, 6, 2]


def test_a_try_after_the_first_commit_only_does_the_rest_and_counts_the_same(
    bench: Bench, tmp_path: Path
) -> None:
    lines = bench.lines(ITEMS)
    bench.store.parses.append(parsed(bench, lines, tmp_path))
    signals = Recorder()
    assert run_shard(bench.shard(plan=COUNTS), lines, bench.tools(), signals) == COUNTS
    assert set(signals.watched) == {()}
    assert [bench.size(table) for table in ("parses", "examples", "drops")] == [9, 6, 2]


def test_parses_that_were_evicted_since_they_were_read_are_stored_again(
    bench: Bench, tmp_path: Path
) -> None:
    lines = bench.lines(ITEMS)
    records = parsed(bench, lines, tmp_path)
    bench.store.parses.append(records)
    assert len(bench.store.parses.get_many([record.key for record in records])) == 9
    with open_store(bench.store.uri) as other:
        assert evict_parses(other, 0, spare_hours=0).evicted == 9
    counts = run_shard(bench.shard(), lines, bench.tools(), Recorder())
    assert (counts.parsed, counts.stored) == (0, 6)
    assert bench.size("parses") == 9


@pytest.mark.slow
def test_try_that_dies_before_its_commits_leaves_nothing(bench: Bench) -> None:
    lines = bench.lines(ITEMS)
    bench.watched(lines)
    assert [bench.size(table) for table in ("parses", "examples", "drops")] == [0, 0, 0]
    stale = replace(COUNTS, parsed=12, reused=0)
    assert run_shard(bench.shard(plan=stale), lines, bench.tools(), Recorder()) == COUNTS


@pytest.mark.slow
def test_fatal_text_drops_only_its_example(bench: Bench) -> None:
    lines = bench.lines(pairs(6))
    (deadly,) = bench.watched(lines)[3]
    signals = Recorder(fatal_keys=frozenset({deadly}))
    counts = run_shard(bench.shard(), lines, bench.tools(), signals)
    affected = counts.dropped["worker_died"]
    assert (counts.stored, affected) in ((5, 1), (4, 2))  # a hypothesis, or a shared premise
    assert bench.size("examples") == counts.stored


def test_the_next_shard_reuses_what_the_first_has_parsed(bench: Bench) -> None:
    run_shard(bench.shard(), bench.lines(pairs(6)), bench.tools(), Recorder())
    renamed = [json.loads(json.dumps(item).replace("pair-", "p-")) for item in pairs(6)]
    signals = Recorder()
    counts = run_shard(bench.shard(number=1), bench.lines(renamed), bench.tools(), signals)
    assert counts == Counts(6, stored=6, parsed=0, reused=12)
    assert set(signals.watched) == {()}


def test_what_an_earlier_job_dropped_is_counted_again_and_written_once(bench: Bench) -> None:
    rejected = {"rejected": {"example_id": "r", "reason": "label", "message": "none"}}
    items = [*pairs(2), pair(6, first=" "), pair(7, second="word " * 1500), rejected]
    dropped = {"empty_text": 1, "sentence_too_long": 1, "label": 1}
    first = run_shard(bench.shard(), bench.lines(items), bench.tools(), Recorder())
    later = replace(bench.shard(), job="later")
    again = run_shard(later, bench.lines(items), bench.tools(), Recorder())
    assert (first.stored, first.dropped) == (2, dropped)
    assert (again.stored, again.already_stored, again.dropped) == (0, 2, dropped)
    assert bench.size("drops") == 3


def test_a_repeat_shares_the_fate_of_the_first(bench: Bench) -> None:
    kept, empty, long = pair(0), pair(1, first=" "), pair(2, second="word " * 1500)
    lines = bench.lines([kept, empty, long] * 3)
    lines = [replace(line, is_repeat=line.position > 2) for line in lines]
    dropped = {"empty_text": 3, "sentence_too_long": 3}
    expected = Counts(9, stored=1, already_stored=2, dropped=dropped, parsed=3, reused=6)
    assert run_shard(bench.shard(), lines, bench.tools(), Recorder()) == expected
    assert [bench.size(table) for table in ("examples", "drops")] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (pair(0, second="word " * 1500), "sentence_too_long"),
        ({"rejected": {"example_id": "r", "reason": "label", "message": "none"}}, "label"),
    ],
)
def test_a_drop_that_comes_twice_in_shards_of_its_own_is_counted_twice_and_written_once(
    bench: Bench, item: dict[str, Any], reason: str
) -> None:
    first, second = bench.lines([item, item])
    for number, line in enumerate((first, replace(second, is_repeat=True))):
        counts = run_shard(bench.shard(number), [line], bench.tools(), Recorder())
        assert (counts.already_stored, counts.dropped) == (0, {reason: 1})
    assert [bench.size(table) for table in ("examples", "drops")] == [0, 1]
