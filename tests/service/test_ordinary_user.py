"""A service of an ordinary user, among files that it may not read, or not write to.

The administrator may read and write everything, so where the tests are the administrator's, the
service is started without that privilege.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from .serving import Served, served

MODEL = "udpipe/english-ewt"
UPLOAD = b"\n".join(
    json.dumps(line).encode()
    for line in (
        {"spec": {"split": "dev", "lang": "en", "fields": ["text"]}},
        {"example": {"example_id": "1", "segments": [{"text": "It rained."}]}},
    )
)


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
    home, cache = folder / "home", folder / "cache"
    home.mkdir(mode=0o555)
    within = [*ordinary(), "env", f"HOME={home}", f"NUMBA_CACHE_DIR={cache}"]
    return served(folder, within=within, **settings)


def backfill(client: httpx.Client) -> httpx.Response:
    return client.post(
        "/datasets/d/backfill", content=UPLOAD, headers={"Content-Type": "application/x-ndjson"}
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
    with start(tmp_path, log_format="json") as service, service.client() as client:
        assert client.post("/parse", json={"text": "It rained."}).status_code == 200
        for path in [*(tmp_path / "store").rglob("*")]:
            if path.is_dir() and "state" not in path.parts:
                path.chmod(0o555)
        for n in range(3):
            answer = client.post("/parse", json={"text": f"It rained in {n}."})
            assert answer.status_code == 200
        assert client.get("/datasets").status_code == 200
        logged(service)  # every line is one of ours


@pytest.mark.parametrize(
    "what",
    [
        "store",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("keys", "folder", "too-deep", "state")),
    ],
)
def test_what_may_not_be_used_at_the_start_is_named_without_a_trace(
    tmp_path: Path, what: str
) -> None:
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
