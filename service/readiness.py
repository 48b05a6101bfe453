"""Readiness: checks that a parse can succeed now."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from service.jobs.records import JobFilter
from service.logs import get_logger
from service.parsers import find_parser, identify
from service.services import Services
from syntax.errors import (
    ModelLoadError,
    NotReadyError,
    OverloadedError,
    ParsebankError,
    UnknownNameError,
)

FRESH_SECONDS: Final = 1.0
"""Time for which a result is reused: several load balancers may ask many times a second."""

CHECK_SECONDS: Final = 5.0

LEAST_FREE_BYTES: Final = 64 * 1024 * 1024

_log = get_logger("parsebank.readiness")

_Check = Callable[[Services], Awaitable[str]]


class Readiness:
    """The readiness checks of one running service; belongs to its event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._asking: asyncio.Task[dict[str, str]] | None = None
        self._old_at = 0.0
        self._faults: dict[str, str] = {}

    async def check(self) -> dict[str, str]:
        """Check readiness; a `NotReadyError` names the checks that fail."""
        if self._services.stopping.is_set():
            raise NotReadyError("the service is stopping", checks={"service": "stopping"})
        if self._asking is None or (self._asking.done() and time.monotonic() >= self._old_at):
            self._asking = asyncio.create_task(self._ask())
        # Shielded: a cancelled request must not cancel the checks of the others.
        return await asyncio.shield(self._asking)

    async def _ask(self) -> dict[str, str]:
        try:
            checks = await _verdict(self._services)
        except NotReadyError as error:
            self._tell(error.detail["checks"])
            raise
        else:
            self._tell({})
            return checks
        finally:
            self._old_at = time.monotonic() + FRESH_SECONDS

    def _tell(self, faults: dict[str, str]) -> None:
        """Log a change of state; probes ask again and again."""
        if faults.keys() != self._faults.keys():
            self._faults = faults
            if faults:
                _log.error("not ready", **faults)
            else:
                _log.info("ready again")


def without_reasons(error: NotReadyError) -> NotReadyError:
    """Error for untrusted callers: reasons name folders and quote libraries."""
    checks = dict.fromkeys(error.detail["checks"], "out of order")
    return NotReadyError(
        f"the service is not ready: {', '.join(checks)} out of order; its log has the reasons, and "
        "so has the answer to a request with a key or, where no keys are asked for, from the "
        "service's own machine",
        checks=checks,
    )


async def _verdict(services: Services) -> dict[str, str]:
    found = await asyncio.gather(*(_answer(check, services) for check in _CHECKS.values()))
    answers = dict(zip(_CHECKS, found, strict=True))
    faults = {name: text for name, (is_well, text) in answers.items() if not is_well}
    if faults:
        listed = "; ".join(f"{name}: {text}" for name, text in faults.items())
        raise NotReadyError(f"the service is not ready: {listed}", checks=faults)
    return {name: text for name, (_, text) in answers.items()}


async def _answer(check: _Check, services: Services) -> tuple[bool, str]:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return True, await check(services)
    except TimeoutError:
        return False, f"no answer within {CHECK_SECONDS:g} s"
    except ParsebankError as error:
        return False, error.message
    except OSError as error:
        return False, error.strerror or type(error).__name__
    except Exception as error:  # any error here would fail a parse too
        return False, type(error).__name__


async def _store(services: Services) -> str:
    parses = services.store.parses
    if services.settings.read_only:
        await asyncio.to_thread(parses.contains, ["0" * 32])
        return f"{services.store.uri}, read-only"
    await asyncio.to_thread(parses.check)
    return services.store.uri


async def _disk(services: Services) -> str:
    settings = services.settings
    keeps = settings.is_local_store and not settings.read_only
    folders = [settings.state_dir, *([Path(settings.store)] if keeps else [])]
    free = await asyncio.to_thread(lambda: min(map(_writable_bytes, folders)))
    return f"{free // 1_000_000} MB free"


def _writable_bytes(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(b"ready?")
        probe.flush()
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise NotReadyError(f"{folder} has {free} bytes left; make room, at least 64 MB")
    return free


async def _jobs(services: Services) -> str:
    await services.jobs.list(JobFilter(limit=1))
    return "the job tables answer"


async def _parser(services: Services) -> str:
    try:
        model = await asyncio.to_thread(find_parser, services.settings)
    except UnknownNameError as error:
        raise ModelLoadError(f"the default language has no parser: {error.message}") from None
    identity = await asyncio.to_thread(identify, model)
    deadline = asyncio.get_running_loop().time() + CHECK_SECONDS
    try:
        await services.pools.probe(model, identity.fingerprint, deadline)
    except OverloadedError:
        # A busy service is ready: it must stay reachable to answer 429.
        return f"{identity.name}, busy"
    return identity.name


_CHECKS: Final[dict[str, _Check]] = {
    "store": _store,
    "disk": _disk,
    "jobs": _jobs,
    "parser": _parser,
}
