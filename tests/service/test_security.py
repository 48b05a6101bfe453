"""API keys, rate limits, cross-origin rules: who is let in, and what the others are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from clients import Client
from service.app import create_app
from service.security.keys import KeyFile
from service.security.middleware import OPEN_PATHS, is_open
from service.security.rules import ROLES, RULES, Role, Rule, may, rule_of
from service.settings import Settings

Serve = Callable[..., Any]

asyncio_module = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys.json")


@pytest.fixture
def guarded(serve: Serve, file: KeyFile) -> Callable[..., Any]:
    """A service that asks for keys."""
    return lambda **fields: serve(keys_file=file.path, **fields)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def test_without_a_key_only_health_and_documentation_answer(guarded, file) -> None:
    file.add("ada")
    async with guarded() as client:
        schema = (await client.get("/openapi.json")).json()
        for path, methods in schema["paths"].items():
            for method in methods:
                answer = await client.request(
                    method.upper(), path.replace("{", "").replace("}", "")
                )
                assert (answer.status_code == 401) == (path not in OPEN_PATHS), (method, path)
        for path in OPEN_PATHS:
            assert (await client.get(path)).status_code == 200, path
        assert (await client.get("/no/such/route")).status_code == 401


async def test_both_headers_carry_a_key_and_refusals_say_how(guarded: Serve, file: KeyFile) -> None:
    secret, _ = file.add("ada")
    async with guarded() as client:
        for headers in (
            bearer(secret),
            {"Authorization": f"bearer  {secret}"},
            {"X-API-Key": secret},
        ):
            assert (await client.get("/info", headers=headers)).status_code == 200
        no_text = [(b"authorization", b"Bearer \xff\xfe\x80")]
        others = ({}, bearer("pb_wrong"), {"X-API-Key": ""}, {"Authorization": secret}, no_text)
        for headers in others:
            refused = await client.get("/info", headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert refused.json()["error_type"] == "unauthorized"
            assert set(refused.json()) == {"error_type", "message", "detail"}
            assert secret not in refused.text
        assert "X-API-Key" in (await client.get("/info")).json()["message"]


async def test_limits_go_by_key_and_a_key_may_have_its_own(guarded: Serve, file: KeyFile) -> None:
    ada, _ = file.add("ada")
    bob, _ = file.add("bob", rate_limit="1/hour")
    async with guarded(rate_limit="3/hour") as client:
        left = [await client.get("/info", headers=bearer(ada)) for _ in range(3)]
        assert [answer.headers["ratelimit-remaining"] for answer in left] == ["2", "1", "0"]
        assert left[0].headers["ratelimit-limit"] == "3"
        refused = await client.get("/info", headers=bearer(ada))
        assert refused.status_code == 429
        assert refused.json()["error_type"] == "rate_limit"
        assert 3590 <= int(refused.headers["retry-after"]) <= 3600
        assert (await client.get("/info", headers=bearer(bob))).status_code == 200
        assert (await client.get("/info", headers=bearer(bob))).status_code == 429
        assert (await client.get("/health/live")).status_code == 200


async def test_two_keys_of_one_name_share_its_limit(guarded: Serve, file: KeyFile) -> None:
    first, _ = file.add("ada")
    second, _ = file.add("ada")
    async with guarded(rate_limit="2/hour") as client:
        answers = [
            await client.get("/info", headers=bearer(secret)) for secret in (first, second, first)
        ]
        assert [answer.status_code for answer in answers] == [200, 200, 429]


def routes(router: Any) -> Iterator[tuple[str, str]]:
    """Every method and path of an app."""
    for route in router.routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from routes(inner)
        else:
            yield from ((method, route.path) for method in route.methods - {"HEAD"})


def shown(path: str) -> str:
    """A path as the document has it."""
    return path.replace(":path", "")


def test_every_route_has_a_role_and_the_types_of_its_body() -> None:
    app = create_app(Settings(store="unused"))
    found = {route for route in routes(app) if not is_open(route[1])}
    document = app.openapi()["paths"]
    assert {*document} <= OPEN_PATHS | {shown(path) for _, path in found}
    assert [route for route in sorted(found) if route not in RULES] == []
    for method, path in found:
        operation = document[shown(path)][method.lower()]
        bodies = [*operation.get("requestBody", {}).get("content", {})]
        if path != "/api/process":
            assert bodies == [*RULES[method, path].body[:1]], path
        assert f"`{RULES[method, path].role}`" in operation["responses"]["403"]["description"]
        assert rule_of(method, path) == RULES[method, path]


def test_what_no_line_names_takes_the_role_that_may_do_everything() -> None:
    assert rule_of("POST", "/something/new") == Rule("admin")
    assert rule_of("DELETE", "/parse") == Rule("admin")
    assert rule_of("GET", "/something/new") == Rule("read")


PARSED = {"text": "It rained."}
BY_ROLE: dict[Role, list[tuple[str, str, Any]]] = {
    "read": [
        ("GET", "/info", None),
        ("GET", "/models/en", None),
        ("GET", "/datasets", None),
        ("GET", "/jobs/none", None),
        ("GET", "/jobs/none/events", None),
        ("GET", "/features/" + "0" * 32, None),
        ("GET", "/metrics", None),
        ("GET", "/api/models", None),
    ],
    "parse": [
        ("POST", "/parse", PARSED),
        ("POST", "/features", {"examples": [{"segments": [PARSED]}]}),
        ("GET", "/api/process?data=It+rained.&tokenizer=", None),
        ("POST", "/api/process?data=It+rained.&tokenizer=", None),
        ("POST", "/datasets/d/backfill", None),
        ("POST", "/datasets/d/backfill?dry_run=true", None),
    ],
    "admin": [
        ("POST", "/models/udpipe/english-ewt/load", None),
        ("POST", "/models/udpipe/english-ewt/unload", None),
        ("POST", "/jobs/none/retry", None),
        ("DELETE", "/jobs/none", None),
        ("PUT", "/parse", None),
    ],
}


@pytest.mark.parametrize("role", ROLES)
async def test_a_key_may_do_what_its_role_includes(guarded, file, role) -> None:
    secret, _ = file.add("ada", role=role)
    async with guarded(job_workers=0) as client:
        for needed, requests in BY_ROLE.items():
            for method, path, body in requests:
                answer = await client.request(method, path, json=body, headers=bearer(secret))
                if may(role, needed):
                    assert answer.status_code not in (401, 403), (method, path)
                    continue
                assert answer.status_code == 403, (method, path)
                refusal = answer.json()
                assert refusal["error_type"] == "forbidden"
                assert refusal["detail"] == {"role": role, "needed": needed}
                assert f"--role {needed}" in refusal["message"]
                assert secret not in answer.text


async def test_without_keys_limits_go_by_address(serve: Serve) -> None:
    async with serve(rate_limit="2/hour") as client:
        transport = httpx.ASGITransport(client.app, client=("192.0.2.7", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://parsebank") as other:
            answers = [await client.get("/info") for _ in range(3)]
            assert [answer.status_code for answer in answers] == [200, 200, 429]
            assert (await other.get("/info")).status_code == 200
        forged = await client.get("/info", headers={"X-Forwarded-For": "192.0.2.8"})
        assert forged.status_code == 429
        assert (await client.get("/health/live")).status_code == 200


@asyncio_module
async def test_without_settings_there_is_no_limit_and_no_header(client: httpx.AsyncClient) -> None:
    assert not any(name.startswith("ratelimit") for name in (await client.get("/info")).headers)


ORIGIN = "https://corpora.example"


@asyncio_module
async def test_other_origins_are_off_by_default(client: httpx.AsyncClient) -> None:
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    assert (await client.options("/parse", headers=asked)).status_code == 405
    answer = await client.get("/info", headers={"Origin": ORIGIN})
    assert "access-control-allow-origin" not in answer.headers


async def test_named_origins_are_let_in_and_preflights_need_no_key(guarded, file) -> None:
    secret, _ = file.add("ada")
    async with guarded(cors_origins=[ORIGIN]) as client:
        asked = {
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        preflight = await client.options("/parse", headers=asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == ORIGIN
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        strange = await client.options("/parse", headers={**asked, "Origin": "https://x.example"})
        assert strange.status_code == 400
        refused = await client.get("/info", headers={"Origin": ORIGIN})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == ORIGIN
        answer = await client.get("/info", headers={"Origin": ORIGIN, **bearer(secret)})
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert "ETag" in answer.headers["access-control-expose-headers"]


async def test_the_document_shows_the_schemes(guarded: Serve, file: KeyFile, serve: Serve) -> None:
    file.add("ada")
    async with guarded() as client:
        schema = (await client.get("/openapi.json")).json()
    assert set(schema["components"]["securitySchemes"]) == {"bearer", "header"}
    assert schema["security"] == [{"bearer": []}, {"header": []}]
    assert schema["paths"]["/health/live"]["get"]["security"] == []
    assert "401" in schema["paths"]["/parse"]["post"]["responses"]
    async with serve() as client:
        assert {} in (await client.get("/openapi.json")).json()["security"]


def test_an_embedded_service_needs_no_key(file, tmp_path, monkeypatch) -> None:
    file.add("ada")
    monkeypatch.setenv("PARSEBANK_KEYS_FILE", str(file.path))
    monkeypatch.setenv("PARSEBANK_RATE_LIMIT", "1/hour")
    with Client.embedded(str(tmp_path / "store")) as client:
        assert [client.info()["name"] for _ in range(2)] == ["parsebank"] * 2


async def test_roles_and_open_paths_hold_for_an_app_below_another(guarded, file) -> None:
    reader, _ = file.add("reader", role="read")
    parser, _ = file.add("parser", role="parse")
    async with guarded(job_workers=0) as client:
        below = httpx.ASGITransport(client.app, root_path="/nlp")
        async with httpx.AsyncClient(transport=below, base_url="http://parsebank/nlp") as mounted:
            assert (await mounted.get("/health/live")).status_code == 200
            assert (await mounted.get("/info")).status_code == 401
            body = {"text": "It rained."}
            refused = await mounted.post("/parse", json=body, headers=bearer(reader))
            assert (refused.status_code, refused.json()["error_type"]) == (403, "forbidden")
            assert (
                await mounted.post("/parse", json=body, headers=bearer(parser))
            ).status_code == 200
            asked = await mounted.get("/api/process?data=It+rained.", headers=bearer(reader))
            assert asked.status_code == 403
