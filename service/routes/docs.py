"""``/docs`` and ``/redoc``: the API for people, without a network and without inline code.

Swagger UI and ReDoc come from the package ``fastapi-offline``; FastAPI's own pages load both from
a CDN and start them by an inline script. The document itself also describes keys and limits.
"""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse, Response

from service.security.middleware import OPEN_PATHS
from service.security.rules import Rule, rule_of

router = APIRouter(include_in_schema=False)

_PACKAGED: Final = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "redoc.standalone.js": "text/javascript",
    "favicon.png": "image/png",
}

_STARTS: Final = {
    "swagger.js": """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  validatorUrl: null,
});
""",
    "redoc.js": """Redoc.init(
  "openapi.json",
  { disableSearch: true, nativeScrollbars: true },
  document.getElementById("api"),
);
""",
}
"""Our scripts that start them. ReDoc searches in a worker that it makes from a ``blob:``, which
the policy forbids; the browser searches the page as well.
"""

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' "
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The hash is that of an empty ``<style>``, which ReDoc then fills by script."""

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parsebank: {title}</title>
<link rel="icon" href="docs/favicon.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="api"></div>
<script src="docs/{bundle}"></script>
<script src="docs/{start}"></script>
</body>
</html>
"""
"""Addresses are relative, so that the pages also work below a mount."""

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


@router.get("/docs")
async def swagger() -> Response:
    return _page("try the API", "swagger-ui-bundle.js", "swagger.js")


@router.get("/redoc")
async def redoc() -> Response:
    return _page("API reference", "redoc.standalone.js", "redoc.js")


def _packaged(name: str) -> Response:
    content = files("fastapi_offline").joinpath("static", name).read_bytes()
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response(content, headers=headers, media_type=_PACKAGED[name])


def _start(name: str) -> Response:
    return Response(_STARTS[name], media_type="text/javascript")


for _names, _answer in ((_PACKAGED, _packaged), (_STARTS, _start)):
    for _name in _names:
        router.add_api_route(f"/docs/{_name}", partial(_answer, _name), name=_name)


def _page(title: str, bundle: str, start: str) -> Response:
    content = _PAGE.format(title=title, bundle=bundle, start=start)
    headers = {
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
    return HTMLResponse(content, headers=headers)


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
