"""Requests made up from the OpenAPI document: no server error, and answers as it says.

A real service gets requests that keep to the schema of an operation and requests that break it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.app import create_app
from service.settings import Settings

from .serving import served, upload

pytestmark = pytest.mark.slow

ALONE = {"/datasets/{name}/backfill": 6, "/sql": 3}
"""Numbers of requests to operations that the command line of schemathesis leaves out: uploads need
a generator of their own, and each query starts a process."""

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


def document() -> dict[str, Any]:
    """The OpenAPI document; building the app touches nothing."""
    return create_app(Settings(store="unused")).openapi()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service in a process of its own."""
    with served(tmp_path_factory.mktemp("service")) as service:
        yield service.url


@pytest.fixture(scope="module")
def schema() -> Any:
    """The document as schemathesis reads it."""
    import schemathesis

    schemathesis.openapi.media_type("application/x-ndjson", uploads())
    return schemathesis.openapi.from_dict(document())


def uploads() -> st.SearchStrategy[bytes]:
    """Backfill uploads, good ones, broken ones and plain bytes."""
    spec = {"split": "dev", "lang": "en", "fields": ["text"]}
    specs = st.just({"spec": spec}) | st.fixed_dictionaries({"spec": st.just(spec) | VALUES})
    segments = st.lists(st.fixed_dictionaries({"text": st.text(max_size=40)}), max_size=2)
    example = st.fixed_dictionaries({"example_id": st.text(max_size=3), "segments": segments})
    lines = st.fixed_dictionaries({"example": example}) | VALUES
    return st.tuples(specs, st.lists(lines, max_size=4)).map(as_lines) | st.binary(max_size=40)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


def as_lines(parts: tuple[Any, list[Any]]) -> bytes:
    return "\n".join(json.dumps(line) for line in (parts[0], *parts[1])).encode()


@pytest.mark.parametrize("path", ALONE)
@pytest.mark.parametrize("kind", ["positive", "negative"])
def test_an_operation_answers_as_it_is_described(
    schema: Any, url: str, path: str, kind: str
) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS as KNOWN

    checks = KNOWN.get_by_names([*CHECKS])

    @given(case=schema[path]["post"].as_strategy(generation_mode=GenerationMode(kind)))
    @settings(max_examples=ALONE[path], derandomize=True, suppress_health_check=list(HealthCheck))
    def send(case: Any) -> None:
        response = case.call(base_url=url, timeout=240)
        case.validate_response(response, checks=checks)

    send()


EXISTING = [
    ("get", "/jobs/{job_id}/events"),  # first: the stream ends when the job does
    ("get", "/jobs/{job_id}"),
    ("post", "/jobs/{job_id}/retry"),
    ("delete", "/jobs/{job_id}"),
    ("get", "/models/{name}"),
    ("post", "/models/{name}/load"),
    ("post", "/models/{name}/unload"),
    ("get", "/features/{key}"),
    ("get", "/parses/{key}"),
    ("delete", "/parses/{key}"),
]


def test_what_exists_answers_as_it_is_described(schema: Any, url: str) -> None:
    """Made-up names are never those of a real job, model or parse."""
    names = {"job_id": new_job(url), "name": "udpipe/english-ewt", "key": new_parse(url)}
    assert {path for path in document()["paths"] if "{" in path} == {
        *("/datasets/{name}/backfill", "/datasets/{name}/examples"),
        *(path for _, path in EXISTING),
    }
    for method, path in EXISTING:
        operation = schema[path][method]
        parameters = {name: value for name, value in names.items() if f"{{{name}}}" in path}
        response = operation.Case(path_parameters=parameters).call(base_url=url, timeout=240)
        operation.validate_response(response)
        assert response.status_code == (409 if path.endswith("/retry") else 200), response.text


def new_job(url: str) -> str:
    content = upload("It works.")
    response = httpx.post(f"{url}/datasets/sample/backfill", content=content, timeout=240)
    assert response.status_code == 202, response.text
    return str(response.json()["id"])


def new_parse(url: str) -> str:
    response = httpx.post(f"{url}/parse", json={"text": "It works."}, timeout=240)
    (item,) = response.json()["items"]
    return str(item["key"])


def test_schemathesis_finds_nothing(url: str, tmp_path: Path) -> None:
    """All its phases: examples, boundary values, made-up requests, sequences of requests."""
    command = [
        *(str(Path(sys.executable).parent / "st"), "run", f"{url}/openapi.json", "--no-color"),
        *(word for path in ALONE for word in ("--exclude-path", path)),
        *("--checks", ",".join(CHECKS)),
        *("--max-examples", "30", "--seed", "1", "--suppress-health-check", "all"),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout[-5_000:]
