"""What the service is compared with: the least that FastAPI can do, and a service written naively.

Run under uvicorn by ``benchmarks/service.py``; files and models come in environment variables.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import ufal.udpipe
from fastapi import Body, FastAPI, Request, Response


def bare() -> FastAPI:
    """A route that takes a body and answers bytes that are ready (``BENCH_ANSWER``)."""
    app = FastAPI()
    answer = Path(os.environ["BENCH_ANSWER"]).read_bytes()

    @app.post("/parse")
    async def parse(request: Request) -> Response:
        await request.body()
        return Response(answer, media_type="application/json")

    return app


def naive() -> FastAPI:
    """UDPipe (``BENCH_MODEL``) called in a ``def`` handler, as FastAPI's guide suggests."""
    app = FastAPI()
    model = ufal.udpipe.Model.load(os.environ["BENCH_MODEL"])
    pipeline = ufal.udpipe.Pipeline(model, "tokenize", "", "", "conllu")
    app.state.model = model  # the pipeline does not keep it alive

    @app.post("/parse")
    def parse(text: Annotated[str, Body(embed=True)]) -> dict[str, str]:
        return {"conllu": pipeline.process(text)}

    @app.get("/health/live")
    def live() -> dict[str, str]:
        return {"status": "ok"}

    return app
