"""The web page of the service: ``GET /``, and its files under ``/page/``.

There is no build step, and nothing is loaded from elsewhere. Anyone may load the page; its requests
need the key that its user types.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import Annotated, Final

from fastapi import APIRouter, Header
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from service.routes.answers import not_modified

router = APIRouter(include_in_schema=False)

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Policy in which ``data:`` and ``blob:`` are for pictures that the page turns into PNG."""

_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Modules import each other by name, so a name cannot carry the hash of its content; a browser
    # asks whether its copy is still right.
    "Cache-Control": "no-cache",
}

IfNoneMatch = Annotated[str, Header()]


@router.api_route("/", methods=["GET", "HEAD"])
async def page(if_none_match: IfNoneMatch = "") -> Response:
    return _answer("index.html", if_none_match)


@router.api_route("/page/{file}", methods=["GET", "HEAD"])
async def page_file(file: str, if_none_match: IfNoneMatch = "") -> Response:
    return _answer(file, if_none_match)


def _answer(name: str, if_none_match: str) -> Response:
    static = _static()
    if name not in static:
        raise HTTPException(404, f"the page has no file {name!r}")
    content, media_type, tag = static[name]
    headers = {**_HEADERS, "ETag": tag}
    unchanged = not_modified(if_none_match, headers)
    return unchanged or Response(content, headers={**headers, "Content-Type": media_type})


@lru_cache(maxsize=1)
def _static() -> dict[str, tuple[bytes, str, str]]:
    found = {}
    for path in files("service.page").joinpath("static").iterdir():
        media_type = _MEDIA_TYPES.get("." + path.name.rpartition(".")[2])
        if media_type is not None:
            content = path.read_bytes()
            tag = f'W/"{blake2b(content, digest_size=16).hexdigest()}"'
            found[path.name] = (content, media_type, tag)
    return found
