"""What the next commit and a reader's look cost after many commits.

    python -m benchmarks.commits [--commits 10000] [--compact 500]

One table of parses takes commits of one row each; every ``--compact`` of them the store is
compacted, as an operator would. At 100, 300, 1,000 and so on commits this measures, as CPU
milliseconds and the median of twenty: an append, the look of an open reader that follows it, and
the first look of a new reader; and the files and bytes of the log.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from benchmarks.scale import PARSER, keys_at
from benchmarks.stream.corpus import read_sentences
from featurestore import FeatureStore, ParseRecord, open_store
from featurestore.tables.encode.parses import encode_parses

SAMPLES = 20
RESULTS = Path(__file__).parent / "results"


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
    checkpoints = [p.stat().st_size for p in (folder / "parses").glob("_delta_log/*.parquet")]
    medians = {f"{name}_ms": statistics.median(each) * 1e3 for name, each in taken.items()}
    return {
        "commits": commits,
        **medians,
        "active_files": files,
        "log_files": len(log),
        "log_megabytes": sum(log) / 1e6,
        "checkpoint_kilobytes": max(checkpoints, default=0) / 1e3,
    }


def run(folder: Path, commits: int, compact: int) -> list[dict[str, Any]]:
    """Commits, and what is measured between them."""
    parse = read_sentences().parses[0]
    row = encode_parses([ParseRecord("0" * 32, "en", PARSER, "gold", parse)])
    stops = [n for power in range(2, 7) for n in (10**power, 3 * 10**power) if n <= commits]
    rows, done = [], 0
    for stop in stops:
        with open_store(folder) as store:
            while done < stop:
                appended(store, row, done)
                done += 1
                if done % compact == 0:
                    store.parses.compact()
        rows.append(measured(folder, row, done))
        print("  ".join(f"{name} {value:,.4g}" for name, value in rows[-1].items()), flush=True)
        done += SAMPLES
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of a commit after many commits.")
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--compact", type=int, default=500, help="Commits between compactions.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = run(Path(folder) / "store", arguments.commits, arguments.compact)
    now = datetime.now(UTC)
    content = {
        "date": now.isoformat(timespec="seconds"),
        "machine": {"cpu": platform.machine(), "cores": os.cpu_count()},
        "versions": {"pyarrow": pa.__version__, "deltalake": deltalake.__version__},
        "compact": arguments.compact,
        "rows": json.loads(json.dumps(rows), parse_float=lambda x: float(f"{float(x):.4g}")),
    }
    path = RESULTS / f"commits-{now:%Y-%m-%d}.json"
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
