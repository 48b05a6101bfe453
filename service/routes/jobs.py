"""Backfill jobs over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, status
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from service.jobs import Job, JobManager
from service.jobs.schemas import BackfillSpec, JobAnswer, Name
from service.services import UsesServices

router = APIRouter(tags=["jobs"])

_UPLOAD = """Newline-delimited JSON. The first line is the specification:

    {"spec": {"split": "dev", "lang": "en", "fields": ["premise", "hypothesis"],
              "labels": [{"name": "label", "kind": "class", "names": ["yes", "no"]}]}}

Each further line is an example, or one that its reader rejected:

    {"example": {"example_id": "1", "segments": [{"text": "..."}, {"text": "..."}],
                 "labels": {"label": "yes"}}}
    {"rejected": {"example_id": "2", "reason": "example", "message": "..."}}

Segments have `text` (modes raw, sentence), `tokens` (pretokenized) or `conllu` (gold)."""

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/x-ndjson": {"schema": {"type": "string", "description": _UPLOAD}}},
    },
    "x-spec": BackfillSpec.model_json_schema(),
}


@router.post("/datasets/{name}/backfill", status_code=status.HTTP_202_ACCEPTED, openapi_extra=_BODY)
async def backfill(name: Name, request: Request, services: UsesServices) -> JobAnswer:
    """Parse, align and store a benchmark split as a job that survives restarts.

    The answer comes when the upload is durable; a line that breaks the format refuses all of it.
    """
    try:
        return JobAnswer.of(await services.jobs.submit(name, request.stream()))
    except ClientDisconnect:
        raise HTTPException(status.HTTP_400_BAD_REQUEST, "the upload broke off") from None


@router.get("/jobs")
async def list_jobs(
    services: UsesServices, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[JobAnswer]:
    """The newest jobs, newest first."""
    return [JobAnswer.of(job) for job in await services.jobs.list(limit)]


@router.get("/jobs/{job_id}")
async def show_job(job_id: str, services: UsesServices) -> JobAnswer:
    """One job: state, progress and the account of its examples."""
    return JobAnswer.of(await services.jobs.get(job_id))


@router.delete("/jobs/{job_id}")
async def cancel_job(job_id: str, services: UsesServices) -> JobAnswer:
    """Cancel a job. What it has stored stays; a job that has ended is left as it is."""
    return JobAnswer.of(await services.jobs.cancel(job_id))


@router.get("/jobs/{job_id}/events", response_class=StreamingResponse)
async def follow_job(job_id: str, services: UsesServices) -> StreamingResponse:
    """Progress as server-sent events: `progress` with the job after each change, then `end`."""
    await services.jobs.get(job_id)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _events(services.jobs, job_id), media_type="text/event-stream", headers=headers
    )


async def _events(jobs: JobManager, job_id: str) -> AsyncIterator[str]:
    async for job in jobs.follow(job_id):
        yield _event("progress", job)
    yield _event("end", job)


def _event(name: str, job: Job) -> str:
    return f"event: {name}\ndata: {JobAnswer.of(job).model_dump_json()}\n\n"
