"""What the next commit and a reader's look cost after many commits.

    python -m benchmarks.commits [--commits 100000] [--real 10000] [--kept 1000]

One table of parses, whose commits add a file each, joined after every hundred. At 100, 300, 1,000
and so on commits this measures, as CPU milliseconds and the median of twenty: an append, the look
of an open reader that follows it, and the first look of a new reader; and the files and bytes of
the log. There are three series:

* ``whole log``: entries are written directly, and nothing was ever vacuumed;
* ``vacuumed``: the same, after a vacuum for which all but the last ``--kept`` commits are old;
* ``real``: every commit is an append, and a vacuum takes what is out of use every ``--kept``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.result import four_digits, write_result
from benchmarks.scale import PARSER, keys_at
from benchmarks.stream.corpus import read_sentences
from featurestore import FeatureStore, ParseRecord, open_store
from featurestore.maintenance.vacuum import WEEK, vacuum_store
from featurestore.tables.encode.parses import encode_parses

SAMPLES = 20
JOINED = 100


def one_row() -> pa.Table:
    parse = read_sentences().parses[0]
    return encode_parses([ParseRecord("0" * 32, "en", PARSER, "gold", parse)])


def appended(store: FeatureStore, row: pa.Table, number: int) -> str:
    """Append one row under a key of its own; the key."""
    (key,) = keys_at(number, 1)
    store.parses.table.append(row.set_column(0, "key", pa.array([key])))
    return key


def measured(folder: Path, row: pa.Table, commits: int) -> dict[str, Any]:
    """The next commits and looks, after a number of commits."""
    taken: dict[str, list[float]] = {"append": [], "look": [], "first_look": []}
    with open_store(folder) as writer, open_store(folder) as reader:
        reader.parses.contains(["0" * 32])
        for sample in range(SAMPLES):
            start = time.process_time()
            key = appended(writer, row, commits + sample)
            done = time.process_time()
            assert reader.parses.contains([key]).all()
            taken["append"].append(done - start)
            taken["look"].append(time.process_time() - done)
            with open_store(folder) as fresh:
                start = time.process_time()
                assert fresh.parses.contains([key]).all()
                taken["first_look"].append(time.process_time() - start)
        files = len(writer.parses.table.snapshot().files)
    log = [path.stat().st_size for path in (folder / "parses" / "_delta_log").iterdir()]
    checkpoints = sorted((folder / "parses" / "_delta_log").glob("*.checkpoint.parquet"))
    medians = {f"{name}_ms": statistics.median(each) * 1e3 for name, each in taken.items()}
    return {
        "commits": commits,
        **medians,
        "active_files": files,
        "log_files": len(log),
        "log_megabytes": sum(log) / 1e6,
        "checkpoint_kilobytes": checkpoints[-1].stat().st_size / 1e3 if checkpoints else 0,
    }


def simulated(folder: Path, row: pa.Table, commits: int, kept: int) -> None:
    """A table after many commits, all but the last of which are older than a vacuum keeps."""
    with open_store(folder) as store:
        appended(store, row, 0)
    log = folder / "parses" / "_delta_log"
    old = time.time() - 3600 * (WEEK + 1)
    for version in range(2, commits + 1):
        is_old = version <= commits - kept
        actions = _actions(version, round(1000 * (old if is_old else time.time())))
        entry = log / f"{version:020d}.json"
        entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
        if is_old:
            os.utime(entry, (old, old))
        if version in (commits - kept, commits):
            DeltaTable(folder / "parses").create_checkpoint()


def _actions(version: int, at: int) -> Iterator[dict[str, Any]]:
    """A commit of one file, or after a hundred the commit that joins them, to one that goes too."""
    yield {"commitInfo": {"timestamp": at, "operation": "WRITE"}}
    if version % JOINED:
        stats = json.dumps({"numRecords": 1})
        yield {
            "add": {
                "path": _path(version),
                "partitionValues": {},
                "size": 9_000,
                "modificationTime": at,
                "dataChange": True,
                "stats": stats,
            }
        }
        return
    for gone in range(max(2, version - JOINED + 1), version):
        yield {"remove": {"path": _path(gone), "deletionTimestamp": at, "dataChange": False}}


def _path(version: int) -> str:
    return f"part-00000-{version:08d}-7c5f-4a7e-9c61-0e0f4b6d1f42-c000.zstd.parquet"


def simulations(row: pa.Table, commits: int, kept: int) -> Iterator[dict[str, Any]]:
    """The series of which entries are written directly."""
    for stop in stops(commits):
        for series in ("whole log", "vacuumed"):
            with tempfile.TemporaryDirectory() as place:
                folder, seconds = Path(place) / "store", 0.0
                simulated(folder, row, stop, kept)
                if series == "vacuumed":
                    start = time.process_time()
                    with open_store(folder) as store:
                        vacuum_store(store)
                    seconds = time.process_time() - start
                yield {
                    "series": series,
                    **measured(folder, row, stop),
                    "vacuum_seconds": seconds,
                }


def real(row: pa.Table, commits: int, kept: int) -> Iterator[dict[str, Any]]:
    """The series of appends."""
    with tempfile.TemporaryDirectory() as place:
        folder, done = Path(place) / "store", 0
        for stop in stops(commits):
            with open_store(folder) as store:
                while done < stop:
                    appended(store, row, done)
                    done += 1
                    if done % kept == 0:
                        vacuum_store(store, older_than_hours=0)
            yield {"series": "real", **measured(folder, row, done)}
            done += SAMPLES


def stops(commits: int) -> list[int]:
    return [n for power in range(2, 7) for n in (10**power, 3 * 10**power) if n <= commits]


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of a commit after many commits.")
    parser.add_argument("--commits", type=int, default=100_000, help="Entries written directly.")
    parser.add_argument("--real", type=int, default=10_000, help="Appends.")
    parser.add_argument("--kept", type=int, default=1_000, help="Commits that a vacuum keeps.")
    arguments = parser.parse_args()
    row, rows = one_row(), []
    for series in (
        simulations(row, arguments.commits, arguments.kept),
        real(row, arguments.real, arguments.kept),
    ):
        for one in series:
            rows.append(one)
            shown = (f"{k} {v:,.4g}" if k != "series" else str(v) for k, v in one.items())
            print("  ".join(shown), flush=True)
    content = {"kept": arguments.kept, "rows": four_digits(rows)}
    write_result("commits", content, libraries=("pyarrow", "deltalake"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
