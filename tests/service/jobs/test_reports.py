"""The account of a job is in the store, beside the version of the dataset that it built."""

from __future__ import annotations

import json
from typing import Any

import pytest

from featurestore.dataset.dataset import FeatureDataset

from .conftest import Running, Service, ndjson, pair, pairs

pytestmark = pytest.mark.asyncio


def opened(service: Service, version: int | None = None) -> FeatureDataset:
    return service.store.dataset("pairs", split="dev", lang="en", version=version)


def reports(service: Service) -> list[dict[str, Any]]:
    return opened(service).reports


@pytest.mark.slow
async def test_every_example_of_each_job_is_accounted_for(running: Running) -> None:
    async with running() as service:
        first = await service.backfill(ndjson([*pairs(20), pair(30, first="")]))
        (report,) = reports(service)
        version = report["version"]
        assert report["job"] == first["id"]
        assert (report["state"], report["examples"]) == ("done", 21)
        assert (report["stored"], report["dropped"]) == (20, {"empty_text": 1})
        assert report["parsed"] + report["reused"] == 40
        data = opened(service, version)
        assert len(data) == 20
        assert data.report == {"empty_text": 1}
        assert (report["parser"], report["tokenizer"]) == (
            *data.parsers,
            data.card.tokenizer_fingerprint,
        )
        second = await service.backfill(ndjson(pairs(25)))
        newest = reports(service)
        assert [r["job"] for r in newest] == [first["id"], second["id"]]
        assert (newest[1]["stored"], newest[1]["already_stored"]) == (5, 20)
        assert opened(service, version).reports == [report]
        assert json.dumps(newest)


@pytest.mark.slow
async def test_a_service_that_stops_leaves_no_job_without_its_report(running: Running) -> None:
    async with running() as service:
        await service.backfill(ndjson(pairs(3)))
    assert [report["stored"] for report in opened(service).reports] == [3]


@pytest.mark.slow
async def test_a_job_whose_examples_are_all_stored_needs_no_worker(running: Running) -> None:
    async with running() as service:
        await service.backfill(ndjson(pairs(10)))
    async with running(job_workers=0) as service:
        job = await service.submit(ndjson(pairs(10)))
        assert (job["state"], job["shards"]["total"]) == ("done", 0)
        assert job["counts"]["already_stored"] == 10
        assert job["counts"]["parses"] == {"done": 0, "reused": 20}
        assert job["started"] == job["finished"] is not None
        assert len(reports(service)) == 2
