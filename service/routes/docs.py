"""``/docs`` and ``/redoc``: the API for people, without a network and without inline code.

Swagger UI and ReDoc come from the package ``fastapi-offline``; FastAPI's own pages load both from
a CDN and start them by an inline script.
"""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

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
