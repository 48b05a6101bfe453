"""OpenAPI reads well, and docs/reference/http.md names every route and every error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from syntax import errors

pytestmark = pytest.mark.asyncio(loop_scope="module")

GUIDE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


async def described(client: httpx.AsyncClient) -> dict[str, Any]:
    answer: dict[str, Any] = (await client.get("/openapi.json")).json()
    return answer


async def test_every_route_is_described(client: httpx.AsyncClient) -> None:
    schema = await described(client)
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            assert route.get("summary"), (path, method)
            assert route.get("description") or path == "/metrics", (path, method)


@pytest.mark.parametrize(
    ("path", "request_model", "entries"),
    [("/parse", "ParseRequest", "items"), ("/features", "FeaturesRequest", "examples")],
)
async def test_the_fields_of_a_request_are_described_and_its_examples_are_answered(
    client: httpx.AsyncClient, path: str, request_model: str, entries: str
) -> None:
    request = (await described(client))["components"]["schemas"][request_model]
    assert all(field.get("description") for field in request["properties"].values())
    assert request["examples"]
    for example in request["examples"]:
        answer = (await client.post(path, json=example)).json()
        assert answer[entries]
        assert all("error" not in entry for entry in answer[entries])


async def test_answers_are_as_the_schema_says(client: httpx.AsyncClient) -> None:
    from service.schemas import ParseAnswer

    body = {
        "texts": ["I can't. Yes \u200b", ""],
        "tokenizer": "parsebank-wordpiece-en",
        "matrices": ["distance", "depth", "ancestor"],
    }
    content = (await client.post("/parse", json=body)).content
    answer = ParseAnswer.model_validate_json(content, strict=True, extra="forbid")
    assert answer.items[0].wordpieces is not None


async def test_the_guide_names_every_route(client: httpx.AsyncClient) -> None:
    schema = await described(client)
    missing = [path for path in schema["paths"] if path not in GUIDE]
    assert missing == []


async def test_the_guide_names_every_error_that_the_service_can_answer() -> None:
    leaves = [
        cls
        for cls in vars(errors).values()
        if isinstance(cls, type)
        and issubclass(cls, errors.ParsebankError)
        and cls.__module__ == errors.__name__
        and not any(sub.__module__ == errors.__name__ for sub in cls.__subclasses__())
    ]
    named = [*leaves, errors.UnknownNameError]
    missing = [cls.error_type for cls in named if f"`{cls.error_type}`" not in GUIDE]
    assert missing == []
