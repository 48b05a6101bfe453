"""An answer of ``POST /parse`` as bytes and headers, in one format and one encoding."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from service.pipeline.plan import Plan
from service.pipeline.records import FeatureAnswer, ItemFeatures
from service.pipeline.response_cache import VARIES
from service.render.arrow import render_arrow
from service.render.conllu import render_conllu
from service.render.etag import is_current, parse_tag
from service.render.json import render_json
from service.render.ndjson import render_ndjson
from service.render.negotiate import MEDIA_TYPES, Encoding, Format

SMALLEST_COMPRESSED: Final = 1_024
"""Bytes from which an answer is compressed."""

CACHE_CONTROL: Final = "private, no-cache"
"""A cache may keep the answer for its one caller, and asks before it uses it again."""

_GZIP_LEVEL: Final = 4
_ZSTD_LEVEL: Final = 3

RENDERERS: Final[Mapping[Format, Callable[[FeatureAnswer], bytes]]] = {
    "json": render_json,
    "conllu": lambda answer: render_conllu(answer).encode(),
    "ndjson": render_ndjson,
    "arrow": render_arrow,
}


@dataclass(frozen=True)
class Rendered:
    """An answer as it is sent.

    Attributes:
        headers: All headers but the length.
        etag: Its entity tag; empty if a text failed.
        is_stored: Whether every text was answered from the store, so that the same request will
            get the same bytes again.
        plan: What it was made for.
        status: 200, or 304 without a body if the caller has it already.
        is_compressible: Whether a caller could have had it compressed.
    """

    content: bytes = field(repr=False)
    headers: Mapping[str, str]
    etag: str
    is_stored: bool
    plan: Plan
    status: int = 200
    is_compressible: bool = False

    def kept_headers(self) -> Iterator[tuple[str, str]]:
        """All headers, for an answer that no middleware will see to."""
        varies = self.is_compressible or "Content-Encoding" in self.headers
        yield from {
            **self.headers,
            "Vary": VARIES if varies else "Accept",
            "Content-Length": str(len(self.content)),
        }.items()


@dataclass(frozen=True)
class Representation:
    """How a caller wants its answer."""

    format: Format
    encoding: Encoding

    @property
    def content_type(self) -> str:
        """The header ``Content-Type``."""
        charset = "; charset=utf-8" if self.format == "conllu" else ""
        return MEDIA_TYPES[self.format] + charset

    def headers(self, etag: str = "") -> dict[str, str]:
        """The headers of an answer that is not compressed (yet)."""
        tag = {"ETag": etag} if etag else {}
        return {
            "Content-Type": self.content_type,
            "Cache-Control": CACHE_CONTROL,
            "Vary": "Accept",
            **tag,
        }

    def unchanged(self, plan: Plan, held: str) -> Rendered | None:
        """The answer to a caller that has it already, if all its texts are stored.

        Args:
            plan: The request.
            held: The header ``If-None-Match``; empty if none came.
        """
        if not held or not plan.is_stored:
            return None
        etag = parse_tag(plan, self.format)
        if not is_current(held, etag):
            return None
        headers = {"ETag": etag, "Cache-Control": CACHE_CONTROL, "Vary": VARIES}
        return Rendered(b"", headers, etag, True, plan, 304)

    def render(self, plan: Plan, answer: FeatureAnswer) -> Rendered:
        """The whole answer; takes its time, so it belongs into a thread."""
        items = answer.items
        parsed = [item for item in items if isinstance(item, ItemFeatures)]
        etag = parse_tag(plan, self.format) if len(parsed) == len(items) else ""
        is_stored = bool(etag) and all(item.cached for item in parsed)
        content = RENDERERS[self.format](answer)
        headers = self.headers(etag)
        # A short stream is compressed too, because its length is not known beforehand.
        is_compressible = self.format == "ndjson" or len(content) >= SMALLEST_COMPRESSED
        if self.encoding != "identity" and is_compressible:
            content = compress(content, self.encoding)
            headers |= {"Content-Encoding": self.encoding, "Vary": VARIES}
        return Rendered(content, headers, etag, is_stored, plan, is_compressible=is_compressible)


def compress(content: bytes, encoding: Encoding) -> bytes:
    """A body in an encoding; other threads run meanwhile."""
    if encoding == "gzip":
        return gzip.compress(content, _GZIP_LEVEL, mtime=0)
    if encoding == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(content)
    return content
