"""Keys and limits as the OpenAPI document shows them."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from service.security.middleware import OPEN_PATHS
from service.security.rules import Rule, rule_of

_SCHEMES: Final[dict[str, Any]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer KEY`"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_REFUSALS: Final = {
    "401": "No API key came, or one that is not valid.",
    "403": "The key has not the role `{role}`, which this takes; or the host is none of the "
    "service's names, or a page of another origin may not write.",
    "429": "Too many requests, or too much waiting; see `Retry-After`.",
}
_ERROR: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}


def describe_security(app: FastAPI, *, required: bool) -> None:
    """Add the schemes, and the answers of authentication, to the document of ``app``.

    They are not dependencies of the routes: those would be resolved again for each request, after
    its body has been read.
    """
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _secured(plain(), required=required)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _secured(schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    schema.setdefault("components", {})["securitySchemes"] = _SCHEMES
    either: list[dict[str, Any]] = [{name: []} for name in _SCHEMES]
    schema["security"] = either if required else [*either, {}]
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if path in OPEN_PATHS:
                operation["security"] = []
            else:
                _add_refusals(operation["responses"], rule_of(method.upper(), path))
    return schema


def _add_refusals(responses: dict[str, Any], rule: Rule) -> None:
    for status, meaning in _REFUSALS.items():
        described = {"description": meaning.format(role=rule.role), "content": _ERROR}
        responses.setdefault(status, described)
    if rule.body:
        meaning = f"The body is of another type than {' or '.join(rule.body)}."
        responses["415"] = {"description": meaning, "content": _ERROR}
