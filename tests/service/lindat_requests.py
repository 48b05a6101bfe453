"""Requests to the LINDAT routes."""

from __future__ import annotations

import httpx
from hypothesis import strategies as st

from . import lindat_reference as udpipe

FULL = {"tokenizer": "", "tagger": "", "parser": ""}

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


async def ask(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    """Send a request as UDPipe 2's client does."""
    body, content_type = udpipe.client_body(fields)
    return await client.post("/api/process", content=body, headers={"Content-Type": content_type})


async def result(client: httpx.AsyncClient, **fields: str) -> str:
    """The result without the comments that name the service."""
    response = await client.post("/api/process", data=fields)
    assert response.status_code == 200, response.text
    return without_header(response.json()["result"])


def without_header(conllu: str) -> str:
    names = ("# generator = Parsebank", "# udpipe_model")
    return "".join(line for line in conllu.splitlines(True) if not line.startswith(names))
