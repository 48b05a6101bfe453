"""Memory of a backfill of a million texts, by the client, the service and its workers.

    python -m benchmarks.backfill.memory [--examples 1000000] [--distinct 500]

Sentences of real text come again and again under new ids, so that all but the first few are cached
and nothing but the way through is measured: reading, sending, staging, lookup, alignment, storing.
The client runs in a process of its own, as users have it, against a service over a socket. Resident
memory is looked at four times a second; the figures are the peaks in each fifth of the examples.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import chain

import psutil

from benchmarks.backfill.corpus import read_corpora
from benchmarks.result import write_result
from clients.client.client import Client
from clients.client.jobs import Job
from clients.processes import free_port
from syntax.errors import ParsebankError
from syntax.examples import DatasetSpec, Example, Segment

FIFTHS = 5
SECONDS = 0.25


class Watch(threading.Thread):
    """Peaks of resident memory, MiB, by part of the run and by who has it."""

    def __init__(self, service: int) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, dict[str, float]] = {}
        self.part = "sending"
        self.over = threading.Event()
        self._service = psutil.Process(service)

    def run(self) -> None:
        """Look until it is over."""
        while not self.over.wait(SECONDS):
            peaks = self.peaks.setdefault(self.part, {})
            for name, size in self._sizes():
                peaks[name] = max(peaks.get(name, 0.0), round(size / 2**20, 1))

    def _sizes(self) -> Iterator[tuple[str, int]]:
        yield "client", psutil.Process().memory_info().rss
        yield "service", self._service.memory_info().rss
        for child in self._service.children(recursive=True):
            try:
                command = " ".join(child.cmdline())
                size = child.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            if "service.jobs.worker" in command:
                yield "job worker", size


def examples(count: int, texts: list[str]) -> Iterator[Example]:
    for n in range(count):
        yield Example(f"{n}", (Segment(text=texts[n % len(texts)]),))


def run(count: int, texts: list[str]) -> dict[str, object]:
    spec = DatasetSpec("million", "train", "en", ("text",))
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        environment = {**os.environ, "PARSEBANK_LOG_LEVEL": "warning"}
        command = ["-m", "clients.cli", "serve", "--store", folder, "--port", str(port)]
        with subprocess.Popen([sys.executable, *command], env=environment) as service:
            try:
                return measure(
                    Client(f"http://127.0.0.1:{port}", timeout=600), spec, count, texts, service.pid
                )
            finally:
                service.terminate()


def measure(
    client: Client, spec: DatasetSpec, count: int, texts: list[str], service: int
) -> dict[str, object]:
    wait_for(client)
    watch = Watch(service)
    watch.start()
    started = time.perf_counter()
    job = client.backfill(spec, examples(count, texts), matrices=False)
    sent = time.perf_counter() - started

    def note(now: Job) -> None:
        watch.part = f"{1 + min(FIFTHS - 1, FIFTHS * now.counts.accounted // count)} of {FIFTHS}"

    job = client.wait(job.id, note)
    watch.over.set()
    assert job.counts.stored == count, job
    return {
        "examples": count,
        "distinct_texts": len(texts),
        "sent_seconds": round(sent, 1),
        "seconds": round(time.perf_counter() - started, 1),
        "parses_done": job.counts.parses_done,
        "peak_mib": watch.peaks,
    }


def wait_for(client: Client) -> None:
    for _ in range(240):
        try:
            client.health()
        except ParsebankError:
            time.sleep(0.5)
        else:
            return
    raise RuntimeError("the service did not start")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--examples", type=int, default=1_000_000)
    arguments.add_argument("--distinct", type=int, default=500)
    options = arguments.parse_args()
    corpus = next(read_corpora())
    texts = list(dict.fromkeys(chain.from_iterable(pair[1:] for pair in corpus.pairs)))
    result = run(options.examples, texts[: options.distinct])
    print(json.dumps(result, indent=2))
    write_result("backfill-memory", {"corpus": corpus.name, **result})


if __name__ == "__main__":
    main()
