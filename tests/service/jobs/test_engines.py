"""The engine `dask`: the same rows as on this machine, and what it refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from featurestore import open_store
from service.jobs.dask.task import ServiceFacts, ensure_store_id, tools_for, worker_settings
from service.jobs.processes import engine_of
from service.settings import Settings
from syntax.errors import MissingExtraError, SpecError

from .clusters import Cluster
from .conftest import Service, ndjson, pair, pairs, run_service, settings_in

FOLDER = "/somewhere"


def everything(service: Service) -> dict[str, Any]:
    """All that a backfill leaves behind."""
    queries = {
        "examples": "select * from examples order by seq",
        "parses": "select key, lang, parser, head, text from parses order by key",
        "drops": "select example_id, reason, message from drops order by example_id",
        "fingerprints": "select fingerprint, kind from fingerprints "
        "where kind in ('parser', 'tokenizer') order by 1",
    }
    return {name: service.store.sql(query).fetchall() for name, query in queries.items()}


@pytest.mark.slow
async def test_a_cluster_stores_what_this_machine_stores(tmp_path: Path) -> None:
    items = [*pairs(50), *pairs(3), pair(50, first=" "), pair(51, second="a\0b")]
    body = ndjson(items)
    with Cluster(tmp_path / "cluster", arguments=("--no-nanny",)) as cluster:
        async with run_service(settings_in(tmp_path / "local", job_workers=1)) as service:
            expected = await service.backfill(body)
            rows = everything(service)
        changes = {"engine": "dask", "dask_scheduler": cluster.address}
        async with run_service(settings_in(tmp_path / "dask", **changes)) as service:
            job = await service.backfill(body)
            again = await service.backfill(body)
            assert len(service.jobs.worker_pids) == 1
            assert everything(service)["examples"] == rows["examples"]
            assert everything(service)["parses"] == rows["parses"]
            assert everything(service)["fingerprints"] == rows["fingerprints"]
            assert set(everything(service)["drops"]) == set(rows["drops"])
    assert expected["state"] == "done"
    for name in ("state", "shards", "counts", "parser", "tokenizer"):
        assert job[name] == expected[name], name
    assert (again["counts"]["already_stored"], again["counts"]["parses"]["done"]) == (53, 0)


def test_the_cluster_has_one_coordinator_unless_jobs_are_only_queued(
    make_settings: Callable[..., Settings],
) -> None:
    for workers, expected in ((0, 0), (1, 1), (16, 1)):
        settings = make_settings(
            engine="dask", dask_scheduler="tcp://127.0.0.1:8786", job_workers=workers
        )
        assert engine_of(settings) == ("service.jobs.dask.coordinator", expected)


def test_dask_without_a_scheduler_is_refused(make_settings: Callable[..., Settings]) -> None:
    with pytest.raises(SpecError, match=r"PARSEBANK_DASK_SCHEDULER.*tcp://host:8786"):
        engine_of(make_settings(engine="dask"))


def test_dask_without_its_extra_names_the_line_that_installs_it(
    make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    settings = make_settings(engine="dask", dask_scheduler="tcp://127.0.0.1:8786")
    with pytest.raises(MissingExtraError, match=r"pip install .*\[dask\]'"):
        engine_of(settings)


def facts(settings: Settings, **changes: Any) -> ServiceFacts:
    return replace(ServiceFacts.of(settings, topic="t"), **changes)


def test_another_store_at_the_same_path_is_refused(
    make_settings: Callable[..., Settings],
) -> None:
    here = make_settings()
    with pytest.raises(SpecError, match="another store is there"):
        tools_for(facts(here, store_id="0" * 32))
    asked = facts(here)
    (Path(here.store) / "store-id").unlink()
    with pytest.raises(SpecError, match="nothing is there"):
        tools_for(asked)


def test_another_release_on_a_worker_is_refused(make_settings: Callable[..., Settings]) -> None:
    with pytest.raises(SpecError, match=r"the service 0\.0\.0; install the same release"):
        tools_for(facts(make_settings(), version="0.0.0"))


def test_a_store_keeps_its_id_and_two_stores_differ(tmp_path: Path) -> None:
    first = ensure_store_id(str(tmp_path / "a"))
    assert ensure_store_id(str(tmp_path / "a")) == first != ensure_store_id(str(tmp_path / "b"))
    with open_store(tmp_path / "a") as store:
        assert store.datasets() == []


def test_the_service_tells_its_limits_and_a_worker_its_own_folders(
    make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"store": FOLDER, "max_chars_per_text": 7, "models_dir": None, "device": "cpu"}
    assert worker_settings(told).store == FOLDER
    monkeypatch.setenv("PARSEBANK_STORE", "/elsewhere")
    monkeypatch.setenv("PARSEBANK_DEVICE", "auto")
    monkeypatch.setenv("PARSEBANK_MAX_CHARS_PER_TEXT", "9")
    settings = worker_settings(told)
    assert (settings.store, settings.device) == ("/elsewhere", "auto")
    assert settings.max_chars_per_text == 7
