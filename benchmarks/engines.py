"""Backfill on a Dask cluster of this machine against the engine of this machine, in one run.

    python -m benchmarks.engines [--rounds 3] [--workers 2] [--pairs 0]

Both engines get the same examples, as many worker processes and a fresh store each round, and are
warm: workers started, models loaded. They take turns. Time runs from the first byte of the upload
to the commit of the last shard; processor seconds are those of the service and all processes below
it, and for `dask` of the scheduler and its workers.

With PARSEBANK_DATA set the texts are the English sentence pairs of XNLI, else the bundled sample.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

import psutil

from benchmarks.result import write_result
from clients.benchmarks import BENCHMARKS, Item
from clients.client.client import Client
from clients.client.jobs import Job
from syntax.examples import DatasetSpec, Example, Segment

TARGET = 0.85
"""Least share of the local engine's speed."""


def read_corpus(pairs: int) -> tuple[DatasetSpec, list[Item]]:
    data = os.environ.get("PARSEBANK_DATA")
    name, splits, path = "sample", ("train", "dev"), None
    if data:
        name, splits, path = "xnli", ("dev", "test"), Path(data) / "benchmarks" / "xnli"
    reader = BENCHMARKS[name]
    items = chain.from_iterable(reader.read(path, split, "en") for split in splits)
    return reader.spec("train", "en"), list(islice(items, pairs or None))


def warm_items(spec: DatasetSpec) -> list[Item]:
    """Examples of other texts, enough for four shards."""
    return [
        Example(f"{n}", tuple(Segment(text=f"Warm {n}: a {field}.") for field in spec.fields), {})
        for n in range(400)
    ]


@contextmanager
def cluster(workers: int) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Address and processes of a scheduler with workers of one thread each."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dask, port = (sys.executable, "-m", "dask"), address.rpartition(":")[2]
    worker = ("--nworkers", str(workers), "--nthreads", "1", "--no-dashboard")
    with tempfile.TemporaryDirectory() as folder:
        scheduler = start(*dask, "scheduler", "--port", port, "--no-dashboard")
        # Workers of the local engine give way to others as well.
        nannies = start(
            *("nice", "-n", "10"), *dask, "worker", address, *worker, "--local-directory", folder
        )
        try:
            yield address, [psutil.Process(process.pid) for process in (scheduler, nannies)]
        finally:
            for process in (nannies, scheduler):
                process.terminate()
                process.wait()


def start(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def processor_seconds(roots: list[psutil.Process]) -> float:
    """Of living processes; the workers of an engine live through a round."""
    family = {process for root in roots for process in (root, *root.children(recursive=True))}
    return sum(sum(process.cpu_times()[:2]) for process in family)


def time_backfill(
    spec: DatasetSpec, items: list[Item], roots: list[psutil.Process], **settings: object
) -> dict:
    with (
        tempfile.TemporaryDirectory() as folder,
        Client.embedded(folder, job_idle_seconds=600, log_level="warning", **settings) as client,
    ):
        finish(client, client.backfill(replace(spec, name="warm", labels=()), warm_items(spec)))
        started, processor = time.time(), processor_seconds(roots)
        job = finish(client, client.backfill(spec, iter(items)))
        seconds = datetime.fromisoformat(job.finished).timestamp() - started
        counts = {"stored": job.counts.stored, "parsed": job.counts.parses_done}
        spent = processor_seconds(roots) - processor
    return {"seconds": seconds, "processor_seconds": spent, **counts}


def finish(client: Client, job: Job) -> Job:
    while job.state in ("queued", "running"):
        time.sleep(0.5)
        job = client.job(job.id)
    if job.state != "done":
        raise RuntimeError(f"the job {job.state}: {job.error}")
    return job


def measure(workers: int, rounds: int, pairs: int) -> list[dict]:
    spec, items = read_corpus(pairs)
    here, results = psutil.Process(), []
    with cluster(workers) as (address, processes):
        for number in range(rounds):
            local = time_backfill(spec, items, [here], job_workers=workers)
            dask = time_backfill(
                spec, items, [here, *processes], engine="dask", dask_scheduler=address
            )
            ratio = local["seconds"] / dask["seconds"]
            processor = local["processor_seconds"] / dask["processor_seconds"]
            results.append(
                {"local": local, "dask": dask, "ratio": ratio, "processor_ratio": processor}
            )
            print(
                f"round {number + 1}: local {local['seconds']:.1f} s, dask "
                f"{dask['seconds']:.1f} s, ratio {ratio:.3f}, of processor seconds {processor:.3f}",
                flush=True,
            )
    return results


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    arguments.add_argument("--pairs", type=int, default=0, help="only the first so many")
    options = arguments.parse_args()
    rounds = measure(options.workers, options.rounds, options.pairs)
    medians = {
        f"median_{name}": statistics.median(each[name] for each in rounds)
        for name in ("ratio", "processor_ratio")
    }
    print(f"median ratio {medians['median_ratio']:.3f} (target {TARGET})")
    write_result("engines", {"workers": options.workers, **medians, "rounds": rounds})


if __name__ == "__main__":
    main()
