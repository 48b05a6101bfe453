"""Run the app under uvicorn: bind, serve, and stop without losing accepted requests."""

from __future__ import annotations

import errno
import gc
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.app import create_app
from service.checks import check_bind
from service.jobs.processes import GRACE_SECONDS
from service.jobs.tools import load_kernels
from service.logs import configure_process_logging, get_logger
from service.processes import without_pandas
from service.protocol import BoundedProtocol
from service.relay import relay_standard_error
from service.settings import Settings
from syntax.errors import ParsebankError, SpecError

KEEP_ALIVE_SECONDS: Final = 75
"""Longer than proxies keep idle connections (nginx: 60), so that ours never closes one in use."""

SWITCH_SECONDS: Final = 0.0005
"""Time that a computing thread may keep the event loop waiting, instead of Python's 5 ms."""

_SELDOM: Final = 100
"""So many times less often than by default are all objects gone through, which stops every request
for .1 to .2 s: requests leave no cycle to be found."""

_MARGIN_SECONDS: Final = 10.0
_QUIET_SECONDS: Final = 3.0
_MOST_FILES: Final = 65_536

_log = get_logger("parsebank.server")


def run_server(settings: Settings) -> None:
    check_bind(settings)
    without_pandas()
    app = create_app(settings)
    with _bound(settings.host, settings.port) as sockets:
        configure_process_logging(settings.log_level, settings.log_format)
        if settings.log_format == "json":
            relay_standard_error()
        sys.setswitchinterval(SWITCH_SECONDS)
        _allow_many_connections()
        server = Server(app, settings)
        try:
            server.run(sockets)
        except SystemExit:
            if server.fault is not None:
                raise server.fault from None
            raise


class Server(uvicorn.Server):
    """uvicorn's server with our way to stop.

    The first SIGTERM or SIGINT: no new connections, not ready any more, and accepted requests are
    answered for at most ``shutdown_seconds``; then job workers give their shards back, and waiting
    rows are committed. The exit status is 0. A second signal ends it at once.
    """

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(_configuration(self._started, settings))
        self.fault: ParsebankError | OSError | None = None
        self._fastapi = app
        self._settings = settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is there by now stays; going through it again would pause every request in sight.
        gc.collect()
        gc.freeze()
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, _SELDOM * old)
        for bound in sockets or []:
            keys = self._settings.keys_file is not None
            address, port = bound.getsockname()[:2]
            host = f"[{address}]" if ":" in address else address
            engines = {"loop": str(self.config.loop), "http": "httptools"}
            url = f"http://{host}:{port}"
            _log.info("listening", url=url, pid=os.getpid(), keys=keys, **engines)
        if not self.should_exit:
            threading.Thread(target=_prepare_kernels, name="kernels", daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _log.info("stopping", requests=len(self.server_state.tasks))
        services = getattr(self._fastapi.state, "services", None)
        if services is not None:
            services.stopping.set()
        watchdog = self._watchdog()
        await super().shutdown(sockets)
        watchdog.cancel()
        _log.info("stopped")

    async def _started(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app; if it cannot start, `fault` says why, instead of a trace in the log."""
        if scope["type"] != "lifespan":
            await self._fastapi(scope, receive, send)
            return
        try:
            await self._fastapi(scope, receive, _without_trace(send))
        except (ParsebankError, OSError) as error:
            self.fault = error
            raise

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        if self.should_exit:
            _end("told to stop twice", 128 + sig)
        self.should_exit = True

    def _watchdog(self) -> threading.Timer:
        """Ends the process if something hangs; its helpers end with it."""
        seconds = self._settings.shutdown_seconds + GRACE_SECONDS + _MARGIN_SECONDS
        timer = threading.Timer(seconds, _end, ("stopping took too long", 1))
        timer.daemon = True
        timer.start()
        return timer


def _prepare_kernels() -> None:
    """Compile the kernels after an installation, for up to half a minute; the log says so."""
    started = time.monotonic()
    told = threading.Timer(_QUIET_SECONDS, _log.info, ("matrix kernels are being compiled",))
    told.daemon = True
    told.start()
    load_kernels()
    told.cancel()
    seconds = time.monotonic() - started
    (_log.info if seconds > _QUIET_SECONDS else _log.debug)(
        "matrix kernels are ready", seconds=round(seconds, 1)
    )


def _without_trace(send: Send) -> Send:
    async def brief(message: Message) -> None:
        await send({**message, "message": ""} if message["type"].endswith(".failed") else message)

    return brief


def _configuration(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        loop="uvloop",
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="debug" if settings.log_level == "debug" else "warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds)),
    )


@contextmanager
def _bound(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Bind all addresses of a name, before anything else is opened."""
    try:
        sockets = [*_sockets(host, port)]
    except OSError as error:
        raise SpecError(f"cannot listen on {host}:{port}: {_reason(error)}") from None
    try:
        yield sockets
    finally:
        for bound in sockets:
            bound.close()


def _sockets(host: str, port: int) -> Iterator[socket.socket]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for number, (family, _, _, _, address) in enumerate(found):
        try:
            yield socket.create_server(address[:2], family=family, backlog=2048)
        except OSError as error:
            # A name may have an IPv6 address where there is no IPv6; one address must do.
            is_last = number == len(found) - 1
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) or is_last:
                raise


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program listens there; choose another --port, or end that program"
    return str(error.strerror or error)


def _allow_many_connections() -> None:
    """Raise a limit: many systems allow only a thousand connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _end(why: str, status: int) -> None:
    _log.error("ended at once", why=why)
    os._exit(status)
