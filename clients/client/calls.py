"""Every call to the service as a value: its request, and how its response is decoded.

`Client` and `AsyncClient` have a method of the same signature for each function here; the two
differ only in how they wait.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypedDict, TypeVar, Unpack
from urllib.parse import quote, urlencode

from clients.client.failures import answered_error
from clients.client.features import (
    ExampleLike,
    FeatureOptions,
    FeaturesResult,
    StoredOptions,
    check_keywords,
    decode_features,
    features_body,
    stored_path,
)
from clients.client.jobs import Forecast, Job, JobState, decode_forecast, decode_job
from clients.client.results import (
    Deletion,
    ParseResult,
    Rows,
    decode_deletion,
    decode_parse_result,
    decode_rows,
)
from clients.client.staging import BackfillOptions, Sent, Upload, backfill_spec
from syntax.errors import SpecError
from syntax.examples import DatasetSpec, LongSentences, ParseMode
from syntax.strict_json import parse_json

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])

MatrixName = Literal["distance", "depth", "ancestor"]

_NOT_KEPT: Final = {
    "read-only": "the service is read-only: new parses are answered, and not kept",
    "store-failing": "the service cannot write to its store now: new parses wait in its memory, "
    "and are lost if it ends; its log says why",
}

URL: Final = "http://127.0.0.1:8000"
"""Where `parsebank serve` listens by default."""

API_KEY: Final = "PARSEBANK_API_KEY"
"""Environment variable with the key for the command line."""

EMBEDDED_URL: Final = "http://embedded.parsebank"
"""Address of an app in this process; it is never resolved."""

TIMEOUT: Final = 60.0
"""Seconds to wait for an answer: twice the service's own deadline for parsing."""

_FIRST_POLL_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.5


def poll_pauses() -> Iterator[float]:
    """Seconds between polls of a job whose events cannot be streamed: a short job ends soon."""
    pause = _FIRST_POLL_SECONDS
    while True:
        yield pause
        pause = min(1.2 * pause, _POLL_SECONDS)


def key_headers(api_key: str | None) -> dict[str, str]:
    """The header that authenticates a caller; empty without a key.

    >>> key_headers("pb_secret")
    {'Authorization': 'Bearer pb_secret'}
    """
    return {} if api_key is None else {"Authorization": f"Bearer {api_key}"}


def quiet_httpx() -> None:
    """Raise httpx's log level to WARNING, unless the program has set one.

    At INFO, httpx logs a line for each request.
    """
    for name in ("httpx", "httpcore"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)


class ParseOptions(TypedDict, total=False):
    """Keywords of ``parse``. Give exactly one of a text, ``texts`` and ``tokens``.

    Attributes:
        tokens: Several pre-tokenized texts, each a list of tokens.
        lang: Language code, such as ``en``; the parser's or the service's default when left out.
        parser: Parser name; the service's choice for the language when left out.
        mode: Mode of the texts; ``raw`` (``pretokenized`` for tokens) when left out.
        tokenizer: Name or path of the tokenizer to align.
        policy: Subword policy: ``attach``, ``broadcast``, ``chain``, ...
        matrices: Which of ``distance``, ``depth`` and ``ancestor`` to answer.
        store: Whether to keep new parses in the store (default: true).
        long_sentences: Sentences over the service's limit: ``refuse`` (default) answers an error;
            ``split`` splits them and marks the pieces.
        token_labels: With ``tokens``: a label for each token; the words inherit them.
        deadline_seconds: Time for the parsing; at most, and by default, the service's limit.
    """

    texts: Sequence[str]
    tokens: Sequence[Sequence[str]]
    lang: str
    parser: str
    mode: ParseMode
    tokenizer: str
    policy: str
    matrices: Sequence[MatrixName]
    store: bool
    long_sentences: LongSentences
    token_labels: Sequence[Sequence[str]]
    deadline_seconds: float


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and the decoder of its response.

    Attributes:
        decode: Decodes the response's body.
        body: JSON to send.
        upload: A body that is streamed instead.
        accept: Media type of the response.
        replayable: Whether the request may be sent twice.
    """

    method: str
    path: str
    decode: Callable[[bytes], T]
    body: Mapping[str, Any] | None = None
    upload: Upload | None = None
    accept: str = "application/json"
    replayable: bool = True

    def request(self) -> dict[str, Any]:
        """Keyword arguments for ``httpx``'s ``request``."""
        headers = {"accept": self.accept}
        if self.upload is not None:
            headers["content-type"] = "application/x-ndjson"
        elif self.body is not None:
            headers["content-type"] = "application/json"
        return {
            "method": self.method,
            "url": self.path,
            "headers": headers,
            "content": self.upload if self.body is None else json.dumps(self.body).encode(),
        }

    def raise_upload_failure(self) -> None:
        """Raise the error that the examples of the upload raised, if any."""
        if self.upload is not None and self.upload.failure is not None:
            raise self.upload.failure

    def answer(self, status: int, headers: Mapping[str, str], content: bytes) -> T:
        """The result.

        Raises:
            ParsebankError: The named error that the service answered.
        """
        if status >= 400:
            raise answered_error(status, headers, content)
        if reason := headers.get("x-not-kept"):
            warnings.warn(_NOT_KEPT.get(reason, _NOT_KEPT["store-failing"]), stacklevel=4)
        return self.decode(content)


def parse(text: str | None = None, **options: Unpack[ParseOptions]) -> Call[ParseResult]:
    """Parse one text or many; a text that cannot be parsed fails alone.

    Args:
        text: One text; or give ``texts=[...]`` or ``tokens=[[...]]``.
        **options: See `ParseOptions`.
    """
    body = _parse_body(text, **options)
    return Call("POST", "/parse", _json(decode_parse_result), body=body)


def parse_conllu(text: str | None = None, **options: Unpack[ParseOptions]) -> Call[str]:
    """As `parse`, but returns CoNLL-U."""
    body = _parse_body(text, **options)
    return Call("POST", "/parse", bytes.decode, body=body, accept="text/x-conllu")


def parse_stream(text: str | None = None, **options: Unpack[ParseOptions]) -> Call[None]:
    """``POST /parse``, answered as NDJSON, which `clients.client.streams` reads."""
    body = _parse_body(text, **options)
    return Call("POST", "/parse", lambda _: None, body=body, accept="application/x-ndjson")


def features(
    examples: Sequence[ExampleLike], **options: Unpack[FeatureOptions]
) -> Call[FeaturesResult]:
    """What a trainer would see of texts, pairs, passages: the arrays of a stream's batch.

    Args:
        examples: Each a text, a sequence of segments, or an `Example`; one that cannot be used
            fails alone.
        **options: See `FeatureOptions` and `StoredOptions`.
    """
    body = features_body(examples, **options)
    return Call("POST", "/features", _json(decode_features), body=body)


def stored_features(
    key: str | Sequence[str], **options: Unpack[StoredOptions]
) -> Call[FeaturesResult]:
    """As `features`, for one example whose parses are stored.

    Args:
        key: Its key, or the parse keys of its segments.
        **options: See `StoredOptions`.
    """
    return Call("GET", stored_path(key, **options), _json(decode_features))


def stored_parse(key: str) -> Call[ParseResult]:
    """As `parse`, for one stored text, by the key of its parse."""
    return Call("GET", f"/parses/{quote(key, safe='')}", _json(decode_parse_result))


def delete_parse(key: str, *, dry_run: bool = False) -> Call[Deletion]:
    """Delete a text from the store: its parse, and every example that uses the parse.

    The call is not repeated when the connection breaks, as a second one finds nothing;
    `stored_parse` then tells whether the parse is gone.

    Args:
        key: Key of the parse.
        dry_run: Only report what would be deleted.

    Raises:
        UnknownKeyError: The store has no parse under the key.
    """
    path = f"/parses/{quote(key, safe='')}{'?dry_run=true' if dry_run else ''}"
    return Call("DELETE", path, _json(decode_deletion), replayable=False)


def info() -> Call[dict[str, Any]]:
    """Release, models, defaults and limits of the service."""
    return Call("GET", "/info", _json(dict))


def models() -> Call[list[dict[str, Any]]]:
    """The parsers, with their languages and fingerprints."""
    return Call("GET", "/models", _json(list))


def health() -> Call[bool]:
    """``True`` when the service is ready; otherwise its error."""
    return Call("GET", "/health/ready", lambda _: True)


def backfill(
    spec: DatasetSpec, examples: Iterable[Sent], **options: Unpack[BackfillOptions]
) -> Call[Job]:
    """Send a dataset split to be parsed, aligned and stored.

    The examples are streamed, so a split may be larger than memory. When this returns, the service
    has them on disk, and the job survives a restart. `wait` waits for its end. The call is not
    repeated: the examples can be read only once.

    Args:
        spec: Specification of the split.
        examples: Its examples and the reader's rejections, in training order.
        **options: See `BackfillOptions`.
    """
    upload = Upload(backfill_spec(spec, **options), examples)
    return Call("POST", _backfill_path(spec), _json(decode_job), upload=upload, replayable=False)


def forecast(
    spec: DatasetSpec, examples: Iterable[Sent], **options: Unpack[BackfillOptions]
) -> Call[Forecast]:
    """Forecast what `backfill` would do with the same arguments; nothing is kept.

    The service reads all examples and parses a sample of them.
    """
    path = f"{_backfill_path(spec)}?dry_run=true"
    upload = Upload(backfill_spec(spec, **options), examples)
    return Call("POST", path, _json(decode_forecast), upload=upload, replayable=False)


def datasets() -> Call[list[dict[str, Any]]]:
    """The datasets of the store, with the drops of each split."""
    return Call("GET", "/datasets", _json(list))


def sql(query: str, limit: int = 100) -> Call[Rows]:
    """Query the store by SQL or by a graph pattern; takes a key with the role ``admin``.

    Args:
        query: One SELECT, or ``pattern { V [upos=VERB]; V -[obj]-> O }``; see
            docs/reference/store.md.
        limit: Most rows, at most 1,000.

    Raises:
        SpecError: The query is wrong, or takes too much memory.
    """
    return Call("POST", "/sql", _json(decode_rows), body={"query": query, "limit": limit})


def jobs(
    *,
    state: JobState | Sequence[JobState] | None = None,
    dataset: str | None = None,
    before: str | None = None,
    limit: int | None = None,
) -> Call[list[Job]]:
    """The newest jobs, newest first.

    Args:
        state: Only those in this state, or in one of these.
        dataset: Only those for this dataset.
        before: Id of the last job of the previous page.
        limit: Largest number of jobs; 100 when left out.
    """
    wanted = {"state": state, "dataset": dataset, "before": before, "limit": limit}
    query = urlencode({name: x for name, x in wanted.items() if x is not None}, doseq=True)
    path = f"/jobs?{query}" if query else "/jobs"
    return Call("GET", path, _json(lambda answer: [*map(decode_job, answer)]))


def job(job_id: str) -> Call[Job]:
    """One job."""
    return Call("GET", _job_path(job_id), _json(decode_job))


def cancel(job_id: str) -> Call[Job]:
    """Stop a job; its stored examples stay."""
    return Call("DELETE", _job_path(job_id), _json(decode_job))


def retry(job_id: str) -> Call[Job]:
    """Run the failed shards of a failed job again; the call itself is not repeated.

    Raises:
        ConflictError: The job has not failed.
        UploadGoneError: Its examples are no longer kept; send the backfill again.
    """
    return Call("POST", f"{_job_path(job_id)}/retry", _json(decode_job), replayable=False)


def as_method(make: Callable[..., Call[Any]]) -> Callable[[Method], Method]:
    """Give a method the name, docstring and signature of the call that it makes and waits for."""
    given = inspect.signature(make)
    myself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    result = str(given.return_annotation).removeprefix("Call[").removesuffix("]")

    def dress(method: Method) -> Method:
        functools.update_wrapper(method, make)
        method.__annotations__ = {**make.__annotations__, "return": result}
        parameters = [myself, *given.parameters.values()]
        shown = given.replace(parameters=parameters, return_annotation=result)
        vars(method)["__signature__"] = shown
        return method

    return dress


def events_path(job_id: str) -> str:
    """Address of a job's progress stream."""
    return f"{_job_path(job_id)}/events"


def _backfill_path(spec: DatasetSpec) -> str:
    return f"/datasets/{quote(spec.name, safe='')}/backfill"


def _job_path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"


def _json(decode: Callable[[Any], T]) -> Callable[[bytes], T]:
    return lambda content: decode(parse_json(content))


def _parse_body(
    text: str | None = None,
    *,
    texts: Sequence[str] | None = None,
    tokens: Sequence[Sequence[str]] | None = None,
    **options: Any,
) -> dict[str, Any]:
    given = {"text": text, "texts": texts, "tokens": tokens}
    came = [name for name, form in given.items() if form is not None]
    if len(came) != 1:
        raise SpecError(f"parse needs one of text, texts and tokens; got {came or 'none'}")
    check_keywords("parse", options, ParseOptions)
    body = {**given, **options}
    return {name: value for name, value in body.items() if value is not None}
