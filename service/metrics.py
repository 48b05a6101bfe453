"""Prometheus metrics, read at each scrape."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, get_args

import psutil
from fastapi import FastAPI
from prometheus_client import Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from service.services import Services
from service.timing import SECONDS
from service.workers.memory import shared_bytes
from service.workers.stats import Reason
from syntax.errors import ParsebankError

Labels = tuple[str, ...]


class RequestMetrics:
    """HTTP requests by method and route; the status is 0 if there was no answer."""

    def __init__(self) -> None:
        self.in_progress = Gauge(
            "parsebank_requests_in_progress", "Requests that are being answered.", registry=None
        )
        self.answered = Counter(
            "parsebank_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=None,
        )
        self.seconds = Histogram(
            "parsebank_request_seconds",
            "Time to answer a request.",
            ["method", "route"],
            registry=None,
            buckets=SECONDS,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; method and route, a template, are few: they become labels."""
        self.answered.labels(method, route, status).inc()
        self.seconds.labels(method, route).observe(seconds)


class Metrics:
    """Metrics of one app, whose ``state.services`` are read while it runs."""

    def __init__(self, app: FastAPI, requests: RequestMetrics) -> None:
        self._app = app
        self._requests = requests

    async def render(self) -> bytes:
        """Read values of the event loop in it, and others in a thread."""
        requests = self._requests
        families = [*_collected(requests.in_progress, requests.answered, requests.seconds)]
        services: Services | None = getattr(self._app.state, "services", None)
        if services is None:
            return generate_latest(_Families(families))
        families += [family for read in _QUICK for family in read(services)]
        pids = _Processes.of(services)

        def finish() -> bytes:
            slow = [*_memory_metrics(pids), *_job_metrics(services)]
            return generate_latest(_Families([*families, *slow]))

        return await services.jobs.run(finish)


@dataclass(frozen=True)
class _Families(Collector):
    families: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        return self.families


@dataclass(frozen=True)
class _Processes:
    parsers: Mapping[str, Sequence[int]]
    jobs: Sequence[int]

    @classmethod
    def of(cls, services: Services) -> _Processes:
        pools = services.pools.running()
        return cls({pool.model.name: pool.pids for pool in pools}, services.jobs.worker_pids)


def _collected(*metrics: Collector) -> Iterator[Metric]:
    for metric in metrics:
        for family in metric.collect():
            family.samples = [one for one in family.samples if not one.name.endswith("_created")]
            yield family


def _text_metrics(services: Services) -> Iterator[Metric]:
    yield _counter(
        "texts",
        "Texts by outcome: parsed, reused, or an error type.",
        ("outcome",),
        {(outcome,): count for outcome, count in services.pipeline.counts.items()},
    )
    yield _counter(
        "adhoc_rows",
        "Rows of the dataset adhoc by outcome: stored, known, full (no room), refused or deleted.",
        ("outcome",),
        {(outcome,): count for outcome, count in [*services.adhoc.counts.items()]},
    )
    yield from _collected(services.stages.histogram)


def _cache_metrics(services: Services) -> Iterator[Metric]:
    texts, answers = services.pipeline.counts, services.responses.lookups
    yield _counter(
        "cache_lookups",
        "Texts by whether their parse was there, and requests by whether their answer was.",
        ("cache", "result"),
        {
            ("parses", "hit"): texts["reused"],
            ("parses", "miss"): texts["parsed"],
            ("answers", "hit"): answers["hit"],
            ("answers", "miss"): answers["miss"],
        },
    )
    yield _gauge(
        "ready_bytes", "Memory of answers kept as bytes.", (), {(): services.responses.size}
    )


def _queue_metrics(services: Services) -> Iterator[Metric]:
    pools = {(pool.model.name,): pool for pool in services.pools.running()}
    queues = {labels: pool.queue for labels, pool in pools.items()}
    yield _gauge(
        "queued_texts",
        "Texts that wait for a parser.",
        ("parser",),
        {labels: queue.texts for labels, queue in queues.items()},
    )
    yield _gauge(
        "queued_words",
        "Words in them, about.",
        ("parser",),
        {labels: queue.words for labels, queue in queues.items()},
    )
    yield _gauge(
        "busy_workers",
        "Parser processes that have a batch in hand.",
        ("parser",),
        {labels: pool.busy for labels, pool in pools.items()},
    )


def _worker_metrics(services: Services) -> Iterator[Metric]:
    stats = {(name,): stats for name, stats in services.pools.stats.items()}
    yield from _collected(*services.pools.stats.histograms)
    yield _counter(
        "worker_restarts",
        "Parser processes replaced, by reason.",
        ("parser", "reason"),
        {
            (*labels, reason): counts.replaced[reason]
            for labels, counts in stats.items()
            for reason in get_args(Reason)
        },
    )
    yield _counter(
        "model_loads",
        "Times that a model was loaded: first asked for, or again after it was unloaded.",
        ("parser",),
        {labels: counts.loads + counts.fork_server_restarts for labels, counts in stats.items()},
    )


def _memory_metrics(pids: _Processes) -> Iterator[Metric]:
    yield _gauge(
        "resident_bytes",
        "Resident memory of the service itself, and of its job workers together.",
        ("process",),
        {
            ("service",): _resident_bytes([os.getpid()]),
            ("jobs",): _resident_bytes(pids.jobs),
        },
    )
    yield _gauge(
        "parser_memory_bytes",
        "Memory of a loaded model's processes, what they share counted once.",
        ("parser",),
        {(name,): shared_bytes(family) for name, family in pids.parsers.items()},
    )


def _job_metrics(services: Services) -> Iterator[Metric]:
    try:
        totals = services.jobs.totals()
    except (SQLAlchemyError, ParsebankError):
        return
    yield _gauge(
        "jobs",
        "Backfill jobs by state.",
        ("state",),
        {(state,): count for state, count in totals.jobs.items()},
    )
    yield _gauge(
        "shards",
        "Shards that are not done, of jobs that were not cancelled.",
        ("state",),
        {
            ("waiting",): totals.shards_waiting,
            ("running",): totals.shards_running,
            ("failed",): totals.shards_failed,
        },
    )


_QUICK: Final = (_text_metrics, _cache_metrics, _queue_metrics, _worker_metrics)


def _resident_bytes(pids: Iterable[int]) -> int:
    """Memory of processes together; one that has just ended counts nothing."""
    total = 0
    for pid in pids:
        with suppress(psutil.Error):
            total += psutil.Process(pid).memory_info().rss
    return total


def _gauge(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    family = GaugeMetricFamily(f"parsebank_{name}", text, labels=labels)
    for given, value in values.items():
        family.add_metric(given, value)
    return family


def _counter(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    family = CounterMetricFamily(f"parsebank_{name}", text, labels=labels)
    for given, value in values.items():
        family.add_metric(given, value)
    return family
