"""Array jobs: N commands share one store, and leave what one command leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from featurestore import FeatureStore, open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.validate import repeated_rows
from service.jobs.records import Counts, Shard
from service.jobs.shard import run_shard

from .bench import Recorder, make_bench
from .conftest import pair, pairs, sentence
from .servers import is_running, wait_for

PAIRS = 120

EXAMPLES = "select seq, example_id, example_key, texts, input_ids, head from examples order by all"


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of sentences in a TSV file, one repeated, one of which nothing can be made."""
    lines = [f"{sentence(n // 2, 'Ida')}\t{sentence(n, 'Ida')} Again {n}." for n in range(PAIRS)]
    lines[70] = lines[3]
    lines[90] = "\tno premise"
    path = tmp_path_factory.mktemp("inputs") / "pairs.tsv"
    rows = [f"{n}\t{line}" for n, line in enumerate(lines)]
    rows.append(rows[3])
    path.write_text("\n".join(["id\tpremise\thypothesis", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def command(table: Path) -> Start:
    """Starts ``parsebank backfill`` of the table, in a process group of its own."""

    def start(store: Path, shard: str | None = None) -> subprocess.Popen[bytes]:
        arguments = ["table", "--path", str(table), "--split", "dev", "--lang", "en", "--id", "id"]
        place = ["--columns", "premise,hypothesis", "--name", "pairs", "--store", str(store)]
        part = [] if shard is None else ["--shard", shard]
        own = {"PARSEBANK_JOB_WORKERS": "1", "PARSEBANK_JOB_SHARD_SEGMENTS": "40"}
        return subprocess.Popen(
            [sys.executable, "-m", "parsebank", "backfill", *arguments, *place, *part, "--json"],
            env={**os.environ, **own},
            process_group=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start


@dataclass(frozen=True)
class Whole:
    """What one command without shards counts and stores."""

    counts: dict[str, Any]
    rows: list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def whole(command: Start, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    counts = finish(command(folder))
    with open_store(folder) as store:
        return Whole(counts, stored(store))


def finish(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The report of a command that ends well."""
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors.decode()
    (job,) = json.loads(output)["jobs"]
    return dict(job["counts"])


def stored(store: FeatureStore) -> list[tuple[Any, ...]]:
    return store.sql(EXAMPLES).fetchall()


@pytest.mark.slow
def test_shards_in_any_order_and_at_once_equal_one_run(
    command: Start, whole: Whole, tmp_path: Path
) -> None:
    tasks = [command(tmp_path, "3/3"), command(tmp_path, "1/3")]
    counts = [*map(finish, tasks), finish(command(tmp_path, "2/3"))]
    assert all(count["stored"] > 10 for count in counts)
    for name in ("examples", "stored", "already_stored"):
        assert sum(count[name] for count in counts) == whole.counts[name]
    assert whole.counts["dropped"] == {"empty_text": 1}
    assert sum(sum(count["dropped"].values()) for count in counts) == 1
    with open_store(tmp_path) as store:
        assert stored(store) == whole.rows
        data = store.dataset("pairs", tokenizer="parsebank-wordpiece-en", split="dev", lang="en")
        assert data.report == {"empty_text": 1}
        assert sorted(report["shard"] for report in data.reports) == ["1/3", "2/3", "3/3"]
        ids = [key for batch in data.stream(shuffle=False) for key in batch["example_id"]]
        (drop,) = data.drops()
        assert drop.example_id == "90"
    assert ids == [str(n) for n in range(PAIRS) if n != 90]


@pytest.mark.slow
def test_a_killed_shard_that_is_repeated_equals_one_run(
    command: Start, whole: Whole, tmp_path: Path
) -> None:
    task = command(tmp_path, "1/2")
    wait_for(lambda: examples_in(tmp_path) > 0)
    family = psutil.Process(task.pid).children(recursive=True)
    os.killpg(task.pid, signal.SIGKILL)
    task.communicate()
    wait_for(lambda: not any(map(is_running, family)))
    before = examples_in(tmp_path)
    twins = [finish(twin) for twin in (command(tmp_path, "1/2"), command(tmp_path, "1/2"))]
    other = finish(command(tmp_path, "2/2"))
    assert all(0 < before <= twin["already_stored"] for twin in twins)
    assert twins[0]["examples"] + other["examples"] == whole.counts["examples"]
    with open_store(tmp_path) as store:
        assert stored(store) == whole.rows


def examples_in(folder: Path) -> int:
    """Rows that readers of a store find now."""
    if not (folder / "datasets").exists():
        return 0
    with open_store(folder) as store:
        (row,) = store.sql("select count(*) from examples").fetchall()
        return int(row[0])


ITEMS = [*pairs(6, "Ida"), pair(6, "Ida", first=" ")]


@dataclass
class Overtaken(Recorder):
    """`Signals` of a run that another overtakes while it parses, or just before its commits."""

    other: Callable[[], object] = print
    while_it_parses: bool = False

    def watch(self, *keys: str, characters: int = 0) -> None:
        super().watch(*keys, characters=characters)
        if self.while_it_parses and not keys:
            self.other()

    def announce(self, plan: Counts) -> None:
        super().announce(plan)
        if not self.while_it_parses:
            self.other()


@pytest.mark.slow
def test_two_runs_of_one_shard_at_once_store_each_row_and_drop_once(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, open_store(tmp_path) as other:
        bench = make_bench(tmp_path, store)
        request = replace(bench.request, shard="1/2")
        lines = bench.lines(ITEMS)

        def run(job: str, to: FeatureStore, signals: Recorder) -> Counts:
            shard = Shard(1, job, 0, 1, 0, request)
            return run_shard(shard, lines, bench.tools(store=to), signals)

        late = Overtaken(other=lambda: run("twin", other, Recorder()))
        assert run("job", store, late).stored == 6
        assert [bench.size(table) for table in ("examples", "drops")] == [6, 1]


def test_jobs_of_separate_tables_store_each_parse_and_row_once(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, open_store(tmp_path) as other:
        bench = make_bench(tmp_path, store)
        lines, shorter = bench.lines(ITEMS), bench.lines(ITEMS[:4])
        twin = replace(bench.shard(), job="twin")
        late = Overtaken(
            other=lambda: run_shard(twin, shorter, bench.tools(store=other), Recorder()),
            while_it_parses=True,
        )
        counts = run_shard(bench.shard(), lines, bench.tools(), late)
        assert (counts.stored, counts.already_stored) == (2, 4)
        assert [bench.size(table) for table in ("examples", "drops")] == [6, 1]
        assert repeated_rows(store) == 0


@pytest.mark.slow
def test_a_shard_that_was_stored_and_deleted_is_stored_again(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        bench = make_bench(tmp_path, store)
        shard = Shard(1, "job", 0, 1, 0, replace(bench.request, shard="1/2"))
        lines = bench.lines(ITEMS)
        run_shard(shard, lines, bench.tools(), Recorder())
        for job in ("second", "third"):
            query = "select parse_keys[2] from examples where seq = 3"
            ((key,),) = store.sql(query).fetchall()
            delete_parses(store, [key])
            assert bench.size("examples") == 5
            counts = run_shard(replace(shard, job=job), lines, bench.tools(), Recorder())
            assert (counts.stored, counts.already_stored) == (1, 5)
            assert bench.size("examples") == 6


def test_positions_of_a_shard_are_those_of_the_whole(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        bench = make_bench(tmp_path, store)
        shard = Shard(1, "job", 0, 1, 500, replace(bench.request, shard="2/2"))
        run_shard(shard, bench.lines(ITEMS)[2:4], bench.tools(), Recorder())
        assert store.sql("select seq from examples order by 1").fetchall() == [(2,), (3,)]
