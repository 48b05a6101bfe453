"""Backfill throughput against the parser alone, both on the same cores, in one run.

    python benchmarks/backfill.py [--rounds 5] [--workers 2]

*Raw*: as many processes as there are job workers call ``ufal.udpipe`` directly: tokenize, tag and
parse, nothing else. *Backfill*: the whole way, from the first byte of the upload to the commit of
the last shard: staging, cache lookup, the same parsing, alignment with wordpieces, matrices and
two Delta tables. Both get the same distinct texts and the same model, and are warm: processes
started, models loaded. Each backfill has a fresh store and is compared with the mean of the raw
runs before and after it.

The ratio is of wall-clock times. On a machine that others use too it scatters; the ratio of
processor seconds, printed beside it, says then what the backfill itself costs.

With PARSEBANK_DATA set the texts are the English sentence pairs of XNLI, else the bundled sample.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count, islice
from pathlib import Path

import httpx
import psutil
import ufal.udpipe

from clients.benchmarks import BENCHMARKS
from service.app import create_app
from service.jobs import JobManager
from service.parsers import find_parser
from service.services import Services
from service.settings import Settings
from syntax.examples import Example

CHUNK = 50
"""Texts that a raw process takes at a time: balanced, and too many for the overhead to matter."""

TARGET = 0.85
WARM_UP = [f"The {word} is warm." for word in ("engine", "water", "room", "tea")] * 4

_model: ufal.udpipe.Model


@dataclass(frozen=True)
class Corpus:
    """Pairs to backfill, and the distinct texts in them."""

    name: str
    pairs: list[tuple[str, str, str]]

    @property
    def texts(self) -> list[str]:
        """The distinct texts, in order."""
        return list(dict.fromkeys(chain.from_iterable(pair[1:] for pair in self.pairs)))


def read_corpus() -> Corpus:
    data = os.environ.get("PARSEBANK_DATA")
    reader, name, splits = BENCHMARKS["sample"], "sample", ("train", "dev")
    path = None
    if data:
        reader, name, splits = BENCHMARKS["xnli"], "xnli", ("dev", "test")
        path = Path(data) / "benchmarks" / "xnli"
    items = chain.from_iterable(reader.read(path, split, "en") for split in splits)
    examples = (item for item in items if isinstance(item, Example))
    pairs = [
        (f"{n}", *(segment.text or "" for segment in example.segments))
        for n, example in enumerate(examples)
    ]
    return Corpus(f"{name} {'+'.join(splits)} en", pairs)


def load_raw(path: str) -> None:
    global _model
    _model = ufal.udpipe.Model.load(path)
    parse_raw(WARM_UP)


def parse_raw(texts: list[str]) -> tuple[int, float]:
    words, started = 0, time.process_time()
    for text in texts:
        tokenizer = _model.newTokenizer("ranges")
        tokenizer.setText(text)
        sentence = ufal.udpipe.Sentence()
        while tokenizer.nextSentence(sentence):
            _model.tag(sentence, "")
            _model.parse(sentence, "")
            words += len(sentence.words) - 1
    return words, time.process_time() - started


def time_raw(pool: multiprocessing.pool.Pool, texts: list[str]) -> tuple[float, float, int]:
    """Wall-clock seconds, processor seconds, words."""
    chunks = [texts[at : at + CHUNK] for at in range(0, len(texts), CHUNK)]
    started = time.perf_counter()
    words, processor = zip(*pool.imap_unordered(parse_raw, chunks), strict=True)
    return time.perf_counter() - started, sum(processor), sum(words)


@asynccontextmanager
async def running_service(workers: int) -> AsyncIterator[tuple[httpx.AsyncClient, Services]]:
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(
            Settings(
                store=folder,
                workers=1,
                job_workers=workers,
                job_idle_seconds=600,
                log_level="warning",
            )
        )
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://bench", timeout=600) as client,
        ):
            yield client, app.state.services


def upload(pairs: list[tuple[str, str, str]]) -> Iterator[bytes]:
    """The lines of an upload."""
    spec = {"split": "bench", "lang": "en", "fields": ["premise", "hypothesis"]}
    yield json.dumps({"spec": spec}).encode() + b"\n"
    for name, first, second in pairs:
        example = {"example_id": name, "segments": [{"text": first}, {"text": second}]}
        yield json.dumps({"example": example}, ensure_ascii=False).encode() + b"\n"


async def backfill(client: httpx.AsyncClient, name: str, lines: list[bytes]) -> dict:
    async def body() -> AsyncIterator[bytes]:
        for at in range(0, len(lines), 500):
            yield b"".join(lines[at : at + 500])

    answer = await client.post(f"/datasets/{name}/backfill", content=body())
    answer.raise_for_status()
    job = answer.json()
    while job["state"] in ("queued", "running"):
        await asyncio.sleep(0.5)  # the job has its own times; asking more often would cost some
        job = (await client.get(f"/jobs/{job['id']}")).json()
    if job["state"] != "done":
        raise RuntimeError(f"the job {job['state']}: {job['error']}")
    return job


async def time_backfill(corpus: Corpus, workers: int) -> tuple[float, float, dict]:
    """Wall-clock seconds, processor seconds of service and workers, the job."""
    async with running_service(workers) as (client, services):
        jobs = services.jobs
        await warm_up(client, services.settings.state_dir / "jobs.sqlite", workers)
        lines = list(upload(corpus.pairs))
        started, processor = time.time(), processor_seconds(jobs)
        job = await backfill(client, "corpus", lines)
        seconds = datetime.fromisoformat(job["finished"]).timestamp() - started
        return seconds, processor_seconds(jobs) - processor, job


def processor_seconds(jobs: JobManager) -> float:
    times = [psutil.Process(pid).cpu_times() for pid in (os.getpid(), *jobs.worker_pids)]
    return sum(each.user + each.system for each in times)


async def warm_up(client: httpx.AsyncClient, jobs_file: Path, workers: int) -> None:
    """Small jobs, of different datasets, until every worker has done one with its own model."""
    lines = list(upload([(str(n), text, text) for n, text in enumerate(WARM_UP)]))
    names = (f"warm-{n}" for n in count())
    while workers_that_worked(jobs_file) < workers:
        await asyncio.gather(
            *(backfill(client, name, lines) for name in islice(names, 4 * workers))
        )


def workers_that_worked(jobs_file: Path) -> int:
    with closing(sqlite3.connect(jobs_file)) as connection:
        query = "select count(distinct owner) from shards where state = 'done'"
        return int(connection.execute(query).fetchone()[0])


def measure(corpus: Corpus, workers: int, rounds: int) -> list[dict]:
    """Each backfill between two raw runs, whose mean it is compared with: machines drift."""
    texts = corpus.texts
    model = str(find_parser(Settings(), lang="en").path)
    results = []
    with multiprocessing.get_context("spawn").Pool(workers, load_raw, (model,)) as pool:
        time_raw(pool, texts[: CHUNK * workers])
        before = time_raw(pool, texts)
        for number in range(rounds):
            seconds, processor, job = asyncio.run(time_backfill(corpus, workers))
            after = time_raw(pool, texts)
            raw, raw_processor = ((before[n] + after[n]) / 2 for n in range(2))
            results.append(
                {
                    "raw_seconds": raw,
                    "backfill_seconds": seconds,
                    "ratio": raw / seconds,
                    "raw_processor_seconds": raw_processor,
                    "backfill_processor_seconds": processor,
                    "processor_ratio": raw_processor / processor,
                    "raw_texts_per_second": len(texts) / raw,
                    "backfill_texts_per_second": len(texts) / seconds,
                    "words": after[2],
                    "counts": job["counts"],
                }
            )
            show_round(number, results[-1])
            before = after
    return results


def show_round(number: int, result: dict) -> None:
    print(
        f"round {number + 1}: raw {result['raw_seconds']:6.2f} s "
        f"({result['raw_texts_per_second']:6.0f} texts/s), "
        f"backfill {result['backfill_seconds']:6.2f} s "
        f"({result['backfill_texts_per_second']:6.0f} texts/s), "
        f"ratio {result['ratio']:.3f}, of processor seconds {result['processor_ratio']:.3f}"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options = arguments.parse_args()
    corpus = read_corpus()
    print(
        f"{corpus.name}: {len(corpus.pairs)} pairs, {len(corpus.texts)} distinct texts, "
        f"{options.workers} processes each"
    )
    rounds = measure(corpus, options.workers, options.rounds)
    ratio, processor = (
        statistics.median(result[name] for result in rounds)
        for name in ("ratio", "processor_ratio")
    )
    print(f"median ratio {ratio:.3f} (target {TARGET}), of processor seconds {processor:.3f}")
    medians = {"median_ratio": ratio, "median_processor_ratio": processor}
    write(corpus, options.workers, rounds, medians)


def write(corpus: Corpus, workers: int, rounds: list[dict], medians: dict[str, float]) -> None:
    now = datetime.now(UTC)
    path = Path(__file__).parent / "results" / f"backfill-{now:%Y-%m-%d}.json"
    path.parent.mkdir(exist_ok=True)
    content = {
        "date": now.isoformat(timespec="seconds"),
        "machine": {"cpu": platform.machine(), "cores": os.cpu_count()},
        "corpus": corpus.name,
        "pairs": len(corpus.pairs),
        "distinct_texts": len(corpus.texts),
        "workers": workers,
        **medians,
        "rounds": rounds,
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
