"""Prometheus metrics: requests by route, and what became of the texts in them."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from prometheus_fastapi_instrumentator import Instrumentator

from service.services import Services


def install_metrics(app: FastAPI) -> None:
    """Measure requests, and serve ``/metrics``; each app has a registry of its own."""
    registry = CollectorRegistry()
    registry.register(_ServiceCollector(app))
    instrumentator = Instrumentator(excluded_handlers=["/metrics", "/health/.*"], registry=registry)
    instrumentator.instrument(app).expose(app, tags=["health"])


class _ServiceCollector(Collector):
    """Reads the pipeline's and the pools' own counts at each scrape."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def collect(self) -> Iterator[Metric]:
        services: Services | None = getattr(self._app.state, "services", None)
        if services is None:
            return
        texts = CounterMetricFamily(
            "parsebank_texts",
            "Texts by outcome: parsed, reused, or an error type.",
            labels=["outcome"],
        )
        for outcome, count in services.pipeline.counts.items():
            texts.add_metric([outcome], count)
        yield texts
        waiting = GaugeMetricFamily(
            "parsebank_queued_chars", "Characters that wait for a parser.", labels=["parser"]
        )
        replaced = CounterMetricFamily(
            "parsebank_workers_replaced",
            "Parser processes that died or were killed.",
            labels=["parser"],
        )
        for pool in services.pools.running():
            waiting.add_metric([pool.model.name], pool.queue.chars)
            replaced.add_metric([pool.model.name], pool.replaced)
        yield waiting
        yield replaced
