"""Backfill jobs over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Query, Request, Response, status
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from service.jobs.forecast import ForecastAnswer
from service.jobs.records import JobFilter, JobState
from service.jobs.schemas import BackfillSpec, JobAnswer, JobDetailAnswer, Name, event_id, events
from service.routes.answers import error_answers
from service.routes.streams import until
from service.schemas import ErrorBody
from service.services import UsesServices, check_keeps

router = APIRouter(tags=["jobs"], responses=error_answers(404, 409, 503))

_UPLOAD = """Newline-delimited JSON. The first line is the specification:

    {"spec": {"split": "dev", "lang": "en", "fields": ["premise", "hypothesis"],
              "labels": [{"name": "label", "kind": "class", "names": ["yes", "no"]}]}}

Each further line is an example, or one that its reader rejected:

    {"example": {"example_id": "1", "segments": [{"text": "..."}, {"text": "..."}],
                 "labels": {"label": "yes"}}}
    {"rejected": {"example_id": "2", "reason": "example", "message": "..."}}

Segments have `text` (modes raw, sentence), `tokens` (pretokenized, retokenize, tokens_mwt) or
`conllu` (gold). The label of a column of kind `class` or `string` is a string, of `float` a
number, of `tags` a list of names, one for each token of the column's `field`, and of `spans` a list
of `{"start_char": 0, "end_char": 4, "label": "LOC"}`, half-open, in code points of the field's
text.
Tags and spans that do not fit drop their example as `label`."""

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/x-ndjson": {"schema": {"type": "string", "description": _UPLOAD}}},
    },
    "x-spec": BackfillSpec.model_json_schema(),
}


_UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"model": ErrorBody, "description": "There is no such job."}
}
_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"model": ErrorBody, "description": "The job has not failed, or its upload is gone."}
}
_FORECAST: dict[int | str, dict[str, Any]] = {
    200: {"model": ForecastAnswer, "description": "With `dry_run`: what the job would do."}
}
_EVENT = {
    "type": "object",
    "description": "One event; `data` is the job as JSON.",
    "properties": {name: {"type": "string"} for name in ("event", "id", "data")},
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": _EVENT}}},
    204: {"description": "The job is over, and `Last-Event-ID` is that of its `end`."},
}


@router.post(
    "/datasets/{name}/backfill",
    status_code=status.HTTP_202_ACCEPTED,
    responses={**_FORECAST, **error_answers(408, 504)},
    openapi_extra=_BODY,
)
async def backfill(
    name: Name,
    request: Request,
    response: Response,
    services: UsesServices,
    dry_run: Annotated[
        bool, Query(description="Only say what the job would do; nothing is kept.")
    ] = False,
) -> JobDetailAnswer | ForecastAnswer:
    """Parse, align and store a benchmark split as a job that survives restarts.

    The answer comes when the upload is durable; a line that breaks the format refuses all of it.
    With `dry_run` it is 200 and a forecast: every line is read, and a sample is parsed.
    """
    if not dry_run:
        check_keeps(services)
    try:
        if dry_run:
            response.status_code = status.HTTP_200_OK
            return await services.jobs.forecast(name, request.stream())
        return JobDetailAnswer.of(await services.jobs.submit(name, request.stream()))
    except ClientDisconnect:
        raise HTTPException(status.HTTP_400_BAD_REQUEST, "the upload broke off") from None


@router.get("/jobs", responses=_UNKNOWN)
async def list_jobs(
    request: Request,
    response: Response,
    services: UsesServices,
    state: Annotated[
        list[JobState] | None, Query(description="Only jobs in this state; may come repeatedly.")
    ] = None,
    dataset: Annotated[Name | None, Query(description="Only jobs for this dataset.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Jobs in one answer, at most.")] = 100,
    before: Annotated[
        str | None, Query(description="Go on after the job with this id: the last one of a page.")
    ] = None,
) -> list[JobAnswer]:
    """List jobs, newest first; a `Link` header with `rel="next"` names the next page."""
    found = await services.jobs.list(
        JobFilter(states=tuple(state or ()), dataset=dataset, before=before, limit=limit + 1)
    )
    if len(found) > limit:
        following = request.url.include_query_params(before=found[limit - 1].id)
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    return [JobAnswer.of(job) for job in found[:limit]]


@router.get("/jobs/{job_id}", responses=_UNKNOWN)
async def show_job(job_id: str, services: UsesServices) -> JobDetailAnswer:
    """Show a job: state, progress, counts of its examples, and failed shards."""
    return JobDetailAnswer.of(await services.jobs.get(job_id))


@router.delete("/jobs/{job_id}", responses=_UNKNOWN)
async def cancel_job(job_id: str, services: UsesServices) -> JobDetailAnswer:
    """Cancel a job and keep what it has stored; a job that has ended stays as it is."""
    return JobDetailAnswer.of(await services.jobs.cancel(job_id))


@router.post("/jobs/{job_id}/retry", responses={**_UNKNOWN, **_CONFLICT})
async def retry_job(job_id: str, services: UsesServices) -> JobDetailAnswer:
    """Run the failed shards of a failed job again; 409 for any other job.

    The job's upload is kept for `job_retry_days` after it failed.
    """
    return JobDetailAnswer.of(await services.jobs.retry(job_id))


@router.get("/jobs/{job_id}/events", response_model=None, responses={**_UNKNOWN, **_STREAM})
async def follow_job(
    job_id: str,
    services: UsesServices,
    last_event_id: Annotated[
        str | None, Header(description="Id of the last event that came; it does not come again.")
    ] = None,
) -> Response:
    """Send server-sent events: `progress` with the job after each change, then `end`.

    A stream that broke off may be asked for again with `Last-Event-ID`. Where `end` has come
    before, the answer is 204, upon which browsers stop asking.
    """
    job = await services.jobs.get(job_id)
    if not job.is_active and last_event_id == event_id(job):
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    changes = until(services.stopping, services.jobs.follow(job_id))
    return StreamingResponse(
        events(changes, last_event_id),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )
