"""A service of an ordinary user, among files that it may not read, or not write to.

The administrator may read and write everything, so where the tests are the administrator's, the
service is started without that privilege.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from clients import Client

from .serving import Served, served, upload

MODEL = "udpipe/english-ewt"


def ordinary() -> list[str]:
    """The beginning of a command that runs the rest as somebody whom permissions hold."""
    if os.geteuid() != 0:
        return []
    command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the administrator cannot be held by permissions: {error}")
    return command


def start(folder: Path, **settings: str) -> AbstractContextManager[Served]:
    """A service whose user may write to no home."""
    home = folder / "home"
    home.mkdir(mode=0o555)
    within = [*ordinary(), "env", f"HOME={home}"]
    return served(folder, within=within, **settings)


def backfill(client: httpx.Client) -> httpx.Response:
    return client.post(
        "/datasets/d/backfill",
        content=upload("It rained."),
        headers={"Content-Type": "application/x-ndjson"},
    )


def logged(service: Served) -> list[dict[str, object]]:
    return [json.loads(line) for line in service.log.read_text().splitlines()]


@pytest.mark.slow
def test_unreadable_model_does_not_affect_others(tmp_path: Path, bundled: Path) -> None:
    models = tmp_path / "models"
    for name in ("good", "closed", "card", "away/inside", "apart/inside2"):
        (models / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(bundled, models / f"{name}.udpipe")
    (models / "card.json").write_text("{}")
    for name, mode in (("closed.udpipe", 0), ("card.json", 0), ("away", 0), ("apart", 0o444)):
        (models / name).chmod(mode)
    with start(tmp_path, models_dir=str(models), log_format="json") as service:
        with service.client() as client:
            listed = {model["name"]: model["problem"] for model in client.get("/models").json()}
            assert listed.keys() >= {MODEL, "udpipe/good", "udpipe/closed", "udpipe/card"}
            assert (listed[MODEL], listed["udpipe/good"]) == (None, None)
            for name in ("udpipe/closed", "udpipe/card"):
                assert "Permission denied" in listed[name]
                refused = client.post("/parse", json={"text": "It rained.", "parser": name})
                assert (refused.status_code, refused.json()["error_type"]) == (503, "model_load")
            body = {"text": "It rained.", "parser": "udpipe/good"}
            assert client.post("/parse", json=body).status_code == 200
            (models / "card.json").chmod(0o644)
            listed = {model["name"]: model["problem"] for model in client.get("/models").json()}
            assert listed["udpipe/card"] is None
        warned = [str(line["event"]) for line in logged(service) if line["level"] == "warning"]
        for name in ("away", "apart"):
            assert any(str(models / name) in line for line in warned)


@pytest.mark.slow
def test_a_state_folder_that_may_not_be_written_to_is_a_named_error(tmp_path: Path) -> None:
    with start(tmp_path, log_format="json") as service, service.client() as client:
        assert backfill(client).status_code == 202
        folders = [path for path in (tmp_path / "store" / "state").rglob("*") if path.is_dir()]
        for path in (tmp_path / "store" / "state", *folders):
            path.chmod(0o555)
        refused = backfill(client)
        assert (refused.status_code, refused.json()["error_type"]) == (503, "disk")
        assert refused.json()["detail"] == {"fault": "EACCES"}
        assert str(tmp_path) not in refused.text
        assert "Permission denied" in refused.json()["message"]
        assert client.post("/parse", json={"text": "It rained."}).status_code == 200
        assert client.get("/jobs").status_code in (200, 503)
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["error_type"]) == (503, "not_ready")
        told = [line for line in logged(service) if line["event"] == "a file cannot be used"]
        assert str(tmp_path / "store" / "state") in str(told[0]["path"])


@pytest.mark.slow
def test_unwritable_store_loses_no_answer(tmp_path: Path) -> None:
    with start(tmp_path, log_format="json", commit_seconds="0.1") as service:
        with service.client() as client:
            assert client.post("/parse", json={"text": "It rained."}).status_code == 200
            while not [*(tmp_path / "store" / "parses").rglob("*.json")]:
                time.sleep(0.1)
            for path in [*(tmp_path / "store").rglob("*")]:
                if path.is_dir() and "state" not in path.parts:
                    path.chmod(0o555)
            told = []
            for n in range(30):
                answer = client.post("/parse", json={"text": f"It rained in {n}."})
                assert answer.status_code == 200
                told.append(answer.headers.get("x-not-kept"))
                time.sleep(0.1)
            assert told[-1] == "store-failing"
            assert client.get("/datasets").status_code == 200
        warned = [line for line in logged(service) if "failed" in str(line["event"])]
        assert len(warned) == 1, warned


@pytest.mark.slow
@pytest.mark.parametrize("by", ["folder", "setting"])
def test_a_read_only_service_answers_and_keeps_nothing(tmp_path: Path, by: str) -> None:
    """One whose store, with its state in it, cannot be written, or that is told to be."""
    with served(tmp_path) as service, service.client() as client:
        assert client.post("/parse", json={"text": "It rained."}).status_code == 200
        key = client.post("/parse", json={"text": "It rained."}).json()["items"][0]["key"]
    folders = [tmp_path / "store", *(p for p in (tmp_path / "store").rglob("*") if p.is_dir())]
    settings = {"log_format": "json"} | ({"read_only": "true"} if by == "setting" else {})
    for path in folders:
        path.chmod(0o555)
    try:
        with start(tmp_path, **settings) as service, service.client() as client:
            assert client.get("/info").json()["read_only"] is True
            known = client.post("/parse", json={"text": "It rained."})
            assert known.json()["items"][0]["cached"] is True
            assert "x-not-kept" not in known.headers
            for cached in (False, False):
                body = {"text": "It snowed.", "tokenizer": "parsebank-wordpiece-en"}
                new = client.post("/parse", json=body)
                assert new.json()["items"][0]["cached"] is cached
                assert new.headers["x-not-kept"] == "read-only"
            asked = {"examples": [{"segments": [{"text": "It hailed."}]}]}
            assert client.post("/features", json=asked).headers["x-not-kept"] == "read-only"
            form = {"data": "It hailed.", "tokenizer": ""}
            posted = client.post("/api/process", data=form)
            assert (posted.status_code, posted.headers["x-not-kept"]) == (200, "read-only")
            rows = client.post("/sql", json={"query": "select count(*) from parses"}).json()
            assert rows["rows"] == [[1]]
            assert client.get("/jobs").json() == []
            for refused in (backfill(client), client.delete(f"/parses/{key}")):
                assert (refused.status_code, refused.json()["error_type"]) == (403, "forbidden")
                assert "read-only" in refused.json()["message"]
            while (ready := client.get("/health/ready")).status_code != 200:
                # A busy machine may take longer over the parser than a check may.
                assert ready.json()["detail"]["checks"].keys() == {"parser"}, ready.text
            assert "read-only" in ready.json()["checks"]["store"]
            with Client(service.url) as python, pytest.warns(UserWarning, match="read-only"):
                python.parse("It hailed again.")
        said = [line for line in logged(service) if "read-only" in str(line["event"])]
        assert [line["level"] for line in said] == ["info" if by == "setting" else "warning"]
        assert not [line for line in logged(service) if line["level"] == "error"]
        assert {p for p in (tmp_path / "store").rglob("*") if p.is_dir()} == {*folders[1:]}
    finally:
        for path in folders:
            path.chmod(0o755)


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", ["store", "keys", "folder", "too-deep", "state"])
def test_what_may_not_be_used_at_the_start_is_named_without_a_trace(tmp_path, what) -> None:
    path = tmp_path / what
    settings = {}
    if what == "too-deep":
        path.write_text("[" * 100_000)
    elif what == "keys":
        path.write_text("{}")
        path.chmod(0)
    else:
        path.mkdir(exist_ok=True)
        path.chmod(0o555)
    if what in ("keys", "folder", "too-deep"):
        settings["keys_file"] = str(path)
    elif what == "state":
        settings["state_dir"] = str(path)
    with pytest.raises(AssertionError) as ended, start(tmp_path, **settings):
        pass
    assert "Traceback" not in str(ended.value)
    assert str(path) in str(ended.value)
