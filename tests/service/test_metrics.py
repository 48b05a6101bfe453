"""Metrics: what the guide lists is what is exported, and the numbers are those of the requests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from .serving import upload

asyncio_module = pytest.mark.asyncio(loop_scope="module")

GUIDE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
Serve = Callable[..., Any]
Values = dict[tuple[str, ...], float]


async def scrape(client: httpx.AsyncClient) -> dict[str, Metric]:
    """Metrics by name, as Prometheus reads them."""
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def values(family: Metric, suffix: str = "") -> Values:
    """Samples by their labels' values."""
    return {
        tuple(sample.labels.values()): sample.value
        for sample in family.samples
        if sample.name == family.name + suffix
    }


@asyncio_module
async def test_metrics_and_their_documentation_agree(client: httpx.AsyncClient) -> None:
    await client.post("/parse", json={"text": "Counted."})
    exported = {
        name + ("_total" if family.type == "counter" else ""): family
        for name, family in (await scrape(client)).items()
    }
    rows = re.findall(r"^\| `(parsebank_\w+)(?:\{([\w, ]+)\})?` \| (\w+) \|", GUIDE, re.M)
    assert {name for name, *_ in rows} == exported.keys()
    for name, labels, kind in rows:
        samples = exported[name].samples
        found = {label for sample in samples for label in sample.labels} - {"le"}
        assert (exported[name].type, found) == (kind, set(re.findall(r"\w+", labels))), name


async def test_requests_are_counted_by_template(serve: Serve) -> None:
    async with serve() as client:
        for path in ("/jobs/a", "/jobs/b", "/nope/1", "/nope/2", "/info"):
            await client.get(path)
        await client.request("BREW", "/info")
        families = await scrape(client)
        assert values(families["parsebank_requests"], "_total") == {
            ("GET", "/jobs/{job_id}", "404"): 2,
            ("GET", "none", "404"): 2,
            ("GET", "/info", "200"): 1,
            ("other", "/info", "405"): 1,
        }
        seconds = values(families["parsebank_request_seconds"], "_count")
        assert seconds["GET", "/jobs/{job_id}"] == 2
        assert values(families["parsebank_requests_in_progress"]) == {(): 1}


async def test_texts_stages_caches_and_batches_add_up(serve: Serve) -> None:
    body = {"texts": ["One two three.", "Four five.", ""], "tokenizer": "parsebank-wordpiece-en"}
    good = {"texts": body["texts"][:2]}
    async with serve(workers=1) as client:
        for sent in (body, good, good):
            assert (await client.post("/parse", json=sent)).status_code == 200
        families = await scrape(client)
        texts = values(families["parsebank_texts"], "_total")  # each is parsed once
        assert texts == {("parsed",): 2, ("reused",): 4, ("empty_text",): 1}
        caches = values(families["parsebank_cache_lookups"], "_total")
        assert (caches["parses", "hit"], caches["parses", "miss"]) == (4, 2)
        assert (caches["answers", "hit"], caches["answers", "miss"]) == (1, 2)
        assert values(families["parsebank_ready_bytes"])[()] > 500
        stages = values(families["parsebank_stage_seconds"], "_count")
        assert stages["lookup",] >= 2
        assert stages["parse",] == 2
        assert stages["queue",] == 2
        assert stages["store",] == 1
        assert stages["render",] == stages["derive",] == 2
        words = values(families["parsebank_batch_words"], "_sum")
        assert 5 <= words["parsebank/english",] <= 10
        assert values(families["parsebank_queued_texts"]) == {("parsebank/english",): 0}
        assert values(families["parsebank_model_loads"], "_total") == {("parsebank/english",): 1}


@asyncio_module
async def test_memory_metric_sums_the_processes(client: httpx.AsyncClient) -> None:
    await client.post("/parse", json={"text": "Load it."})
    families = await scrape(client)
    own = psutil.Process().memory_info().rss
    resident = values(families["parsebank_resident_bytes"])
    assert resident["service",] == pytest.approx(own, rel=0.2)
    assert values(families["parsebank_parser_memory_bytes"])["parsebank/english",] > 20e6


async def test_jobs_and_shards_are_counted_by_state(serve: Serve) -> None:
    async with serve(job_workers=0) as client:
        for name in ("a", "b"):
            answer = await client.post(f"/datasets/{name}/backfill", content=upload("Wait."))
            assert answer.status_code == 202
        await client.delete(f"/jobs/{answer.json()['id']}")
        families = await scrape(client)
        jobs = values(families["parsebank_jobs"])
        assert (jobs["queued",], jobs["cancelled",], jobs["done",]) == (1, 1, 0)
        shards = values(families["parsebank_shards"])
        assert shards == {("waiting",): 1, ("running",): 0, ("failed",): 0}


async def test_metrics_exist_before_the_app_starts(make_settings: Callable[..., Any]) -> None:
    from service.app import create_app

    app = create_app(make_settings())
    text = (await app.state.metrics.render()).decode()
    assert "parsebank_requests_in_progress 0.0" in text
    assert "parsebank_texts" not in text
