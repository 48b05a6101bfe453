"""Logs: one line per event on standard error. Never a text, a key, or the password of a URL.

Exceptions are logged without their messages: messages of libraries quote what they were given.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterator, MutableMapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Literal

from syntax.errors import InputError, ParsebankError, without_passwords
from syntax.extras import absent

with absent("rich"):  # for tracebacks that we do not print, and .07 s of each process
    import structlog

get_logger = structlog.get_logger

LogFormat = Literal["console", "json"]
Event = MutableMapping[str, Any]

_FACTS: ContextVar[dict[str, Any] | None] = ContextVar("parsebank_request", default=None)

_LEVEL: Final = "PARSEBANK_LOG_LEVEL"
_FORMAT: Final = "PARSEBANK_LOG_FORMAT"

_FRAMES: Final = 12
"""Innermost frames to log; those further out are the frameworks'."""

_LEVELS: Final = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)


def configure_logging(level: str, form: LogFormat = "console") -> None:
    structlog.configure(
        processors=[
            _add_request_id,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _describe_exception,
            _hide_passwords,
            structlog.processors.JSONRenderer(default=str) if form == "json" else _console_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=_StandardError,
    )


def configure_embedded_logging(level: str, form: LogFormat) -> None:
    """Unless the program does so: structlog's own standard output belongs to that program."""
    if not structlog.is_configured():
        configure_logging(level, form)


def configure_process_logging(level: str, form: LogFormat = "console") -> None:
    """Like `configure_logging`, and route all logging of this process through it.

    For processes that are ours: a program that embeds the service keeps its own logging.
    """
    configure_logging(level, form)
    # Helper processes ask for it with `own_helper`, before they know any settings.
    os.environ.update({_LEVEL: level, _FORMAT: form})
    logging.basicConfig(handlers=[_Bridge()], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    # Its warnings quote the bodies that it cannot read.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    sys.excepthook = _report_crash
    threading.excepthook = lambda fault: _report_crash(
        fault.exc_type, fault.exc_value, fault.exc_traceback
    )


def own_helper() -> None:
    form: LogFormat = "json" if os.environ.get(_FORMAT) == "json" else "console"
    configure_process_logging(os.environ.get(_LEVEL, "info"), form)


@contextlib.contextmanager
def request_facts(request_id: str) -> Iterator[dict[str, Any]]:
    """Facts about a request, whose id meanwhile logged events carry."""
    facts: dict[str, Any] = {"request_id": request_id}
    before = _FACTS.set(facts)
    try:
        yield facts
    finally:
        _FACTS.reset(before)


def note(**facts: Any) -> None:
    """Add numbers and names, which are logged, to the log line of the current request, if any."""
    current = _FACTS.get()
    if current is not None:
        current.update(facts)


def describe(error: BaseException) -> str:
    """An exception for the log: types and places, and known harmless messages.

    >>> try:
    ...     int("private")
    ... except ValueError as error:
    ...     "private" in describe(error)
    False
    """
    parts = []
    seen: BaseException | None = error
    while seen is not None:
        parts.append("\n".join([headline(seen), *_places(seen.__traceback__)]))
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return "\nwhile handling\n".join(parts)


def headline(error: BaseException) -> str:
    """Type of an exception, and its message if that quotes no user data."""
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: {error.strerror}"
    if isinstance(error, ParsebankError) and not isinstance(error, InputError):
        return f"{name}: {error.message}"
    return name


def _places(trace: TracebackType | None) -> list[str]:
    return [
        f"  {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(trace)[-_FRAMES:]
    ]


def _add_request_id(_: Any, __: str, event: Event) -> Event:
    facts = _FACTS.get()
    if facts is not None:
        event.setdefault("request_id", facts["request_id"])
    return event


def _describe_exception(_: Any, __: str, event: Event) -> Event:
    given = event.pop("exc_info", None)
    error = given[1] if isinstance(given, tuple) else given
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["exception"] = describe(error)
    return event


def _hide_passwords(_: Any, __: str, event: Event) -> Event:
    for name, value in event.items():
        if isinstance(value, str) and "://" in value:
            event[name] = without_passwords(value)
    return event


def _console_line(_: Any, __: str, event: Event) -> str:
    time, level, message = (event.pop(name, "") for name in ("time", "level", "event"))
    trace = event.pop("exception", None)
    facts = "".join(f" {name}={_shown(value)}" for name, value in event.items())
    told = str(message) if str(message).isprintable() else repr(message)
    line = f"{time} {level:<7} {told}{facts}"
    return line if trace is None else f"{line}\n{trace}"


def _shown(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text else repr(text)


class _StandardError:
    """Writes to the current standard error: an embedding program may redirect it."""

    def __init__(self, *_: object) -> None:
        pass

    def msg(self, line: str) -> None:
        """Write a line; a full disk or a closed pipe must not take the service with it."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"{line}\n")

    debug = info = warning = error = critical = exception = msg


class _Bridge(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        level = next((n for n in _LEVELS if n <= record.levelno), logging.DEBUG)
        log = structlog.get_logger().bind(logger=record.name)
        log.log(level, record.getMessage(), exc_info=record.exc_info)


def _report_crash(
    kind: type[BaseException],
    error: BaseException | None,
    _: TracebackType | None,
) -> None:
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return
    structlog.get_logger().error("crashed", exc_info=error)
