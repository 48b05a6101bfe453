"""The service inside this process: the same app behind the same client, without a socket."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from typing import Any

import httpx

from syntax.errors import MissingExtraError, ParsebankError, SpecError

APP_GROUP = "parsebank.app"
"""Entry-point group of the app factory: called with settings as keywords, returns an ASGI app."""

CHECK_GROUP = "parsebank.check"
"""Entry-point group of a check of names and settings that does not build the app."""


def load_app(**settings: Any) -> Any:
    found = [*entry_points(group=APP_GROUP)]
    if not found:
        raise MissingExtraError(
            "no embedded service is installed (entry-point group parsebank.app is empty); "
            "run `pip install parsebank`"
        )
    return _called(found[0].load(), settings)


def check_names(names: Mapping[str, Iterable[Any]], **settings: Any) -> None:
    """Refuse names (``parsers`` are pairs of name and language) that the app would refuse."""
    for check in entry_points(group=CHECK_GROUP):
        _called(check.load(), {**settings, **names})


def _called(function: Any, settings: Mapping[str, Any]) -> Any:
    # Only this process reaches the app, so keys and limits of a public service do not apply, and
    # its jobs need not give way to anybody's requests.
    own = {"keys_file": None, "rate_limit": None, "tokenizers_dir": "/", "job_nice": 0}
    if "PARSEBANK_LOG_LEVEL" not in os.environ:
        own["log_level"] = "warning"  # standard error belongs to the program around it
    given = {name: value for name, value in settings.items() if value is not None}
    try:
        return function(**{**own, **given})
    except ParsebankError:
        raise
    except ValueError as error:
        raise SpecError(f"the embedded service refuses these settings: {error}") from error


class EmbeddedTransport(httpx.AsyncBaseTransport):
    """`httpx.ASGITransport` that also drives the app's lifespan, from its first request on."""

    def __init__(self, app: Any) -> None:
        self._app = app
        # Failures of the app are answers here as they are over a socket.
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._lifespan: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._stop = asyncio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._started is None:
            self._started = asyncio.get_running_loop().create_future()
            self._lifespan = asyncio.create_task(self._live(self._started))
        await asyncio.shield(self._started)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        if self._lifespan is not None:
            self._stop.set()
            await self._lifespan
            self._lifespan = None

    async def _live(self, started: asyncio.Future[None]) -> None:
        # One task enters and leaves the lifespan, as its task groups demand.
        try:
            async with self._app.router.lifespan_context(self._app):
                started.set_result(None)
                await self._stop.wait()
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)


class BlockingTransport(httpx.BaseTransport):
    """An `EmbeddedTransport` for callers without an event loop: it runs one in a thread."""

    def __init__(self, app: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor())
        thread = threading.Thread(target=self._loop.run_forever, name="parsebank", daemon=True)
        thread.start()
        self._inner = EmbeddedTransport(app)
        self._running: set[asyncio.Task[Any]] = set()
        self._finalizer = weakref.finalize(
            self, _shut_down, self._loop, thread, self._inner, self._running
        )
        # If the client is never closed, its app shuts down when the interpreter ends. `atexit` is
        # too late: thread pools accept no work by then, and the app needs one to stop. The hook
        # that stops the pools is private; it runs the latest entry first, so ours runs earlier.
        threading._register_atexit(self._finalizer)  # type: ignore[attr-defined]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Wait for the answer; an interrupt cancels the request."""
        answer = asyncio.run_coroutine_threadsafe(self._kept(request), self._loop)
        try:
            return answer.result()
        except BaseException:
            answer.cancel()
            raise

    def close(self) -> None:
        self._finalizer()

    async def _kept(self, request: httpx.Request) -> httpx.Response:
        task = asyncio.create_task(self._answer(request))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await task

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        request.stream = _AsyncStream(request.stream)
        response = await self._inner.handle_async_request(request)
        # Not decoded here: the client decodes the encoding that it requested.
        content = b"".join([chunk async for chunk in response.aiter_raw()])
        return httpx.Response(response.status_code, headers=response.headers, content=content)


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream: Iterable[bytes] = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._stream:
            yield chunk


def _shut_down(
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
    transport: EmbeddedTransport,
    running: set[asyncio.Task[Any]],
) -> None:
    async def stop() -> None:
        for task in running:
            if not task.cancelling():  # a second cancellation would interrupt its cleanup
                task.cancel()
        try:
            await asyncio.gather(*running, return_exceptions=True)
            await transport.aclose()
        finally:
            await loop.shutdown_default_executor()

    try:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
    finally:
        # Not inside `stop`: the loop must first deliver the result of `stop`.
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
