"""The service under load, each figure as a ratio to a baseline of the same run.

    python -m benchmarks.service [--rounds 5] [--only hits misses ...] [--requests 100000]

*hits*: an answer that is kept, against a bare FastAPI route that takes the same body and answers
the same bytes; p50 at concurrency 1, 16 and 64.
*misses*: new texts one after the other, single sentences and passages of twelve, against UDPipe
called in this process on the same texts; time per request against time per text. Beside it the same
of a service that calls UDPipe in a ``def`` handler: what HTTP alone takes.
*cores*: new texts, 64 requests at a time: the service and its client on all cores against both on
one; and against a service that calls UDPipe in a ``def`` handler, on all cores.
*live*: p99 of ``/health/live`` while 64 connections keep the workers busy with new texts.
*memory*: resident memory of the service and its workers over many requests, a tenth of them new.

Servers run as processes of their own, as users run them (``parsebank serve``, ``uvicorn``). The
client is on the same machine and takes its share of the cores, so ratios count, not rates.
With PARSEBANK_DATA set the texts are English sentences of XNLI, else the bundled sample's.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
import ufal.udpipe
import uvloop

from benchmarks import load
from benchmarks.result import RESULTS, write_result
from clients.benchmarks import BENCHMARKS
from syntax.examples import Example

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "service" / "resources" / "models" / "english-ewt.udpipe"
CONCURRENCIES = (1, 16, 64)
TARGETS = {
    "hits": 1.3,
    "misses_of_sentences": 1.5,
    "misses_of_passages": 1.15,
    "two_cores": 1.85,
    "naive": 1.8,
    "live_p99_ms": 20.0,
}
CORES = sorted(os.sched_getaffinity(0))


def read_texts() -> list[str]:
    """Distinct English sentences."""
    data = os.environ.get("PARSEBANK_DATA")
    reader, splits, path = BENCHMARKS["sample"], ("train", "dev"), None
    if data:
        reader, splits = BENCHMARKS["xnli"], ("dev", "test")
        path = Path(data) / "benchmarks" / "xnli"
    items = itertools.chain.from_iterable(reader.read(path, split, "en") for split in splits)
    segments = (s for item in items if isinstance(item, Example) for s in item.segments)
    return list(dict.fromkeys(segment.text for segment in segments if segment.text))


def new_texts(texts: list[str]) -> Iterator[str]:
    """Texts that have not been sent before, without an end."""
    for number in itertools.count():
        yield from (f"{text} {number}" if number else text for text in texts)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(command: list[str], port: int, **environment: str) -> Iterator[tuple[str, int]]:
    """A running server's address and process id."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, cwd=ROOT)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(url)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def wait_until_up(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/docs").read()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{url} did not come up in a minute")


@contextmanager
def parsebank(folder: Path, workers: int) -> Iterator[tuple[str, int]]:
    """The service with a store of its own, and its model loaded in every worker."""
    port = free_port()
    serve = [str(Path(sys.executable).parent / "parsebank"), "serve", "--port", str(port)]
    options = ["--store", str(folder), "--workers", str(workers), "--log-level", "warning"]
    parsers = json.dumps({"en": f"udpipe/{MODEL.stem}"})
    with server([*serve, *options], port, PARSEBANK_PARSERS=parsers) as (url, pid):
        warm = [load.post("/parse", {"text": f"It is warm {n}."}) for n in range(16 * workers)]
        load.run(url, warm, 4 * workers)
        yield url, pid


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process, and those that it starts meanwhile, on one core."""
    os.sched_setaffinity(0, CORES[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, CORES)


@contextmanager
def peer(name: str, **environment: str) -> Iterator[str]:
    port = free_port()
    options = ["--app-dir", str(Path(__file__).parents[1]), "--factory", "--log-level", "warning"]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        f"benchmarks.peers:{name}",
        "--port",
        str(port),
        *options,
    ]
    with server(command, port, **environment) as (url, _):
        yield url


def parse_requests(texts: Iterator[str], count: int) -> Iterator[bytes]:
    return (load.post("/parse", {"text": text}) for text in itertools.islice(texts, count))


def hits(texts: list[str], folder: Path, rounds: int) -> dict:
    """A kept answer against a bare route, in turns."""
    request = load.post("/parse", {"text": texts[0], "matrices": ["distance", "depth"]})
    with parsebank(folder, 1) as (url, _):
        for _ in range(3):
            answer = fetch(url, request)
        (folder / "answer.json").write_bytes(answer)
        with peer("bare", BENCH_ANSWER=str(folder / "answer.json")) as bare:
            assert fetch(bare, request) == answer
            results = {
                f"concurrency_{c}": in_turns(url, bare, request, c, rounds) for c in CONCURRENCIES
            }
    return {"answer_bytes": len(answer), **results}


def in_turns(url: str, bare: str, request: bytes, concurrency: int, rounds: int) -> dict:
    count = 2_000 if concurrency == 1 else 8_000
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(load.run(bare, load.repeat(request, count), concurrency))
        ours.append(load.run(url, load.repeat(request, count), concurrency))
    ratios = [our.median / their.median for our, their in zip(ours, theirs, strict=True)]
    return {
        "p50_ratio": round(statistics.median(ratios), 3),
        "service": ours[-1].summary(),
        "bare": theirs[-1].summary(),
    }


def fetch(url: str, request: bytes) -> bytes:
    head, _, body = request.partition(b"\r\n\r\n")
    path = head.split()[1].decode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    sent = urllib.request.Request(url + path, data=body, headers=headers)
    with urllib.request.urlopen(sent) as answer:
        content: bytes = answer.read()
    return content


def misses(texts: list[str], folder: Path, rounds: int) -> dict:
    """One new text after the other, against UDPipe in this process: sentences, and passages."""
    passages = [" ".join(texts[at : at + 12]) for at in range(0, len(texts), 12)]
    sizes = {"sentences": (new_texts(texts), 1_000), "passages": (new_texts(passages), 100)}
    with parsebank(folder, 1) as (url, _), peer("naive", BENCH_MODEL=str(MODEL)) as naive:
        urls = {"service": url, "naive": naive}
        return {
            name: against_udpipe(urls, fresh, count, rounds)
            for name, (fresh, count) in sizes.items()
        }


def against_udpipe(urls: dict[str, str], fresh: Iterator[str], count: int, rounds: int) -> dict:
    parse, means = raw_parser(), {name: [] for name in (*urls, "udpipe")}
    for _ in range(rounds):
        batch = list(itertools.islice(fresh, count))
        means["udpipe"].append(statistics.mean(timed(parse, text) for text in batch))
        for name, url in urls.items():
            found = load.run(url, parse_requests(iter(batch), count), 1)
            means[name].append(statistics.mean(found.times))
    ratios = {
        name: statistics.median(a / b for a, b in zip(means[name], means["udpipe"], strict=True))
        for name in urls
    }
    return {
        **{f"{name}_ratio": round(ratio, 3) for name, ratio in ratios.items()},
        **{f"{name}_ms": round(1e3 * statistics.median(each), 3) for name, each in means.items()},
    }


def raw_parser() -> Callable[[str], object]:
    """UDPipe, and nothing else: tokenize, tag, parse."""
    model = ufal.udpipe.Model.load(str(MODEL))

    def parse(text: str) -> None:
        tokenizer = model.newTokenizer("ranges")
        tokenizer.setText(text)
        sentence = ufal.udpipe.Sentence()
        while tokenizer.nextSentence(sentence):
            model.tag(sentence, "")
            model.parse(sentence, "")

    parse("It is warm.")
    return parse


def timed(function: Callable[[str], object], argument: str) -> float:
    started = time.perf_counter()
    function(argument)
    return time.perf_counter() - started


def cores(texts: list[str], folder: Path, rounds: int) -> dict:
    """Throughput of new texts: on all cores, on one, and the naive service on all."""
    fresh = new_texts(texts)
    rates: dict[str, list[float]] = {"all_cores": [], "one_core": [], "naive": []}
    with (
        parsebank(folder / "all", len(CORES)) as (every, _),
        pinned(folder / "one") as one,
        peer("naive", BENCH_MODEL=str(MODEL)) as naive,
    ):
        for _ in range(rounds):
            rates["all_cores"].append(throughput(every, fresh))
            rates["naive"].append(throughput(naive, fresh))
            with on_one_core():
                rates["one_core"].append(throughput(one, fresh))
    ours = rates.pop("all_cores")
    ratios = {
        name: statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        for name, theirs in rates.items()
    }
    every_rate = {"all_cores": ours, **rates}
    return {
        "cores": len(CORES),
        **{f"ratio_to_{name}": round(ratio, 3) for name, ratio in ratios.items()},
        "requests_per_second": {n: round(statistics.median(r), 1) for n, r in every_rate.items()},
    }


@contextmanager
def pinned(folder: Path) -> Iterator[str]:
    """The service on one core with one worker; its client must be there too (`on_one_core`)."""
    with on_one_core():
        context = parsebank(folder, 1)
        url, _ = context.__enter__()
    try:
        yield url
    finally:
        context.__exit__(None, None, None)


def throughput(url: str, texts: Iterator[str]) -> float:
    return load.run(url, parse_requests(texts, 3_000), 64).rate


def live(texts: list[str], folder: Path, rounds: int) -> dict:
    """``/health/live`` while the workers are busy; the naive service beside it."""
    with parsebank(folder, len(CORES)) as (url, _):
        ours = [uvloop.run(live_under_load(url, new_texts(texts))) for _ in range(rounds)]
    with peer("naive", BENCH_MODEL=str(MODEL)) as url:
        theirs = uvloop.run(live_under_load(url, new_texts(texts)))
    middle = sorted(ours, key=lambda result: result.quantile(0.99))[len(ours) // 2]
    return {"service": middle.summary(), "naive": theirs.summary()}


async def live_under_load(url: str, texts: Iterator[str]) -> load.Load:
    """Four hundred looks at ``/health/live``, ten milliseconds apart, under full load."""
    busy = asyncio.create_task(load.load_async(url, parse_requests(texts, 1_000_000), 64))
    await asyncio.sleep(0.5)
    looks = [await one_look(url) for _ in range(400)]
    busy.cancel()
    await asyncio.wait([busy])
    return load.Load(4.0, [look.times[0] for look in looks], {200: len(looks)})


async def one_look(url: str) -> load.Load:
    await asyncio.sleep(0.01)
    return await load.load_async(url, iter([load.get("/health/live")]), 1)


def memory(texts: list[str], folder: Path, requests: int) -> dict:
    """Resident memory after each tenth of the requests."""
    fresh, known = new_texts(texts), [load.post("/parse", {"text": text}) for text in texts[:500]]
    with parsebank(folder, len(CORES)) as (url, pid):
        load.run(url, known, 16)
        sizes = [resident_mb(pid)]
        for _ in range(10):
            mixed = mix(known, parse_requests(fresh, requests // 100), requests // 10)
            load.run(url, mixed, 16)
            sizes.append(resident_mb(pid))
    return {"requests": requests, "new": requests // 10, "mb_after_each_tenth": sizes}


def mix(known: list[bytes], new: Iterator[bytes], count: int) -> Iterator[bytes]:
    for number in range(count):
        yield known[number % len(known)] if number % 10 else next(new)


def resident_mb(pid: int) -> float:
    """Private and shared memory of a process and its children, shared pages counted once."""
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    return round(sum(each.memory_full_info().pss for each in family) / 2**20, 1)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--requests", type=int, default=100_000, help="of `memory`")
    parts = {"hits": hits, "misses": misses, "cores": cores, "live": live}
    arguments.add_argument("--only", nargs="*", choices=[*parts, "memory"], default=None)
    options = arguments.parse_args()
    texts, results = read_texts(), {}
    for name in options.only or [*parts, "memory"]:
        with tempfile.TemporaryDirectory() as folder:
            size = options.requests if name == "memory" else options.rounds
            results[name] = {**parts, "memory": memory}[name](texts, Path(folder), size)
        print(name, json.dumps(results[name], indent=2))
    write(results)


def write(results: dict) -> None:
    path = RESULTS / f"service-{datetime.now(UTC).date()}.json"
    known = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else {}
    write_result("service", {"targets": TARGETS, "results": {**known, **results}})


if __name__ == "__main__":
    main()
