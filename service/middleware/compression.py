"""Compression of what the routes answer, for callers that want it."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from starlette_compress import CompressMiddleware, add_compress_type, remove_compress_type

from service.render.negotiate import MEDIA_TYPES

SMALLEST_COMPRESSED: Final = 1_024
"""Bytes from which an answer is compressed."""


def add_compression(app: FastAPI) -> None:
    """Compress answers with zstd or gzip.

    A stream of NDJSON is flushed with every piece. Server-sent events are left alone: they are
    short, and wanted at once.
    """
    remove_compress_type("text/event-stream")
    add_compress_type(MEDIA_TYPES["ndjson"], streaming=True)
    add_compress_type(MEDIA_TYPES["conllu"])
    add_compress_type(MEDIA_TYPES["arrow"])
    app.add_middleware(
        CompressMiddleware, minimum_size=SMALLEST_COMPRESSED, brotli=False, zstd_level=3
    )
