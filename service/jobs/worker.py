"""The worker process of backfills: it claims and runs shards until there are none.

One text that kills its worker must not fail a whole shard. Before texts are parsed, their keys are
written to a small file of this try, which survives the process. Texts that were in flight together
are parsed one by one in the next try. A text fails on which two tries ended while it was alone, or
one try after long computing.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from service.jobs.database import JobDatabaseError, database_url, open_database
from service.jobs.processes import read_config
from service.jobs.queue import Claims, JobQueue, LeaseLostError
from service.jobs.records import Counts, Shard
from service.jobs.shard import STEP_CHARACTERS, run_shard
from service.jobs.staging import StagedShardError, StagingArea, read_shard
from service.jobs.tools import ToolCache, load_kernels, shard_store
from service.logs import get_logger, headline
from service.processes import lower_priority, without_pandas
from service.settings import Settings
from service.workers.memory import Usage
from syntax.errors import (
    InputError,
    MissingExtraError,
    ModelLoadError,
    StoreFormatError,
    UnknownNameError,
    WorkerDiedError,
    WorkError,
)

POLL_SECONDS: Final = 0.1
"""Seconds between two claims of an idle worker."""

LONGEST_DELAY_SECONDS: Final = 60.0

_PERMANENT: Final = (
    InputError,
    UnknownNameError,
    ModelLoadError,
    MissingExtraError,
    StagedShardError,
    StoreFormatError,
)
"""Errors that another try would repeat."""

_LOG = get_logger("parsebank.jobs")


class StepTimer:
    """Ends this process by SIGALRM when a step takes too long; a context manager.

    A step is one group of texts, or any other work between two heartbeats: load a parser, align
    some texts, commit. For texts of more than `STEP_CHARACTERS` it may be longer in proportion. The
    timer is the kernel's, whose signal ends a process even while a parser's library holds the
    interpreter. The texts in flight are on disk by then (`InFlightLog`), and the shard is run
    again.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._marks_slow = False

    def __enter__(self) -> Self:
        self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    @contextmanager
    def marking_slow(self, log: InFlightLog) -> Iterator[None]:
        """Mark a text in the log once this process has computed on it for `SLOW_SHARE` of a step.

        SIGPROF counts the processor's time: neither a busy machine nor a text on which the process
        only waits makes a mark. Python's own part of the signal handler writes the signal's number
        to the file, also while a library holds the interpreter.
        """
        before = signal.signal(signal.SIGPROF, lambda *_: None)
        with log.appending() as file:
            other = signal.set_wakeup_fd(file, warn_on_full_buffer=False)
            self._marks_slow = True
            try:
                yield
            finally:
                self._marks_slow = False
                signal.setitimer(signal.ITIMER_PROF, 0.0)
                signal.set_wakeup_fd(other)
                signal.signal(signal.SIGPROF, before)

    def restart(self, characters: int = 0, waiting: float = 0.0) -> None:
        """Begin a step on so many characters, which may also wait, as for a database."""
        seconds = self._seconds * max(1.0, characters / STEP_CHARACTERS)
        signal.setitimer(signal.ITIMER_REAL, seconds + waiting)
        if self._marks_slow:
            signal.setitimer(signal.ITIMER_PROF, seconds * SLOW_SHARE)


SLOW_SHARE: Final = 0.25

DEATHS = 2
"""Workers that must die on a text alone before it fails: one may be killed by chance."""

_KEY_BYTES = 32


class InFlightLog:
    """The in-flight log of one try of one shard, in the folder of its job; a context manager.

    Its keys are those of `service.jobs.shard.Signals`, from the logs of earlier tries.
    """

    def __init__(self, folder: Path, shard: int, tries: int) -> None:
        ends = [_read_log(_path(folder, shard, earlier)) for earlier in range(1, tries)]
        alone = Counter(keys[0] for keys, _ in ends if len(keys) == 1)
        slow = (keys[0] for keys, is_slow in ends if len(keys) == 1 and is_slow)
        self.slow_keys = frozenset(slow)
        self.fatal_keys = self.slow_keys | {key for key, n in alone.items() if n >= DEATHS}
        self.isolated_keys = frozenset(key for keys, _ in ends for key in keys)
        self._path = _path(folder, shard, tries)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)  # the texts in flight stay in it

    def watch(self, *keys: str) -> None:
        """Record the keys of the texts that are parsed next; none ends the record."""
        content = "".join(keys).encode("ascii")
        if len(content) < os.fstat(self._file).st_size:
            os.ftruncate(self._file, len(content))
        os.pwrite(self._file, content, 0)

    @contextmanager
    def appending(self) -> Iterator[int]:
        """A file descriptor that marks the text in flight: a byte after its key."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        try:
            yield file
        finally:
            os.close(file)


def _read_log(path: Path) -> tuple[list[str], bool]:
    """The keys in flight at the end of a try, and if they were marked as slow."""
    content = path.read_bytes() if path.exists() else b""
    size = len(content) // _KEY_BYTES * _KEY_BYTES
    keys = content[:size].decode("ascii")
    marked = signal.SIGPROF in content[size:]
    return [keys[at : at + _KEY_BYTES] for at in range(0, size, _KEY_BYTES)], marked


def _path(folder: Path, shard: int, tries: int) -> Path:
    return folder / f"in-flight-{shard:06d}-{tries}"


class RunInterruptedError(Exception):
    """The service stops, or the cluster is lost; the shard is released, and the try not counted."""


class RunningShard:
    """The `Signals` of one shard in this process."""

    def __init__(
        self,
        shard: Shard,
        claims: Claims,
        in_flight: InFlightLog,
        timer: StepTimer,
        stop: threading.Event,
    ) -> None:
        self.fatal_keys = in_flight.fatal_keys
        self.slow_keys = in_flight.slow_keys
        self.isolated_keys = in_flight.isolated_keys
        self._shard = shard
        self._claims = claims
        self._in_flight = in_flight
        self._timer = timer
        self._stop = stop

    def beat(self) -> None:
        """Begin a step; raise if the service stops, the lease is lost or the database away."""
        if self._stop.is_set():
            raise RunInterruptedError
        self._claims.check(self._shard)
        self._timer.restart()

    def watch(self, *keys: str, characters: int = 0) -> None:
        self._in_flight.watch(*keys)
        self._timer.restart(characters)

    def announce(self, plan: Counts) -> None:
        self._timer.restart(waiting=self._claims.max_wait)
        self._claims.save_plan(self._shard, plan)
        self._timer.restart()

    def complete(self, counts: Counts) -> None:
        self._timer.restart(waiting=self._claims.max_wait)
        self._claims.complete(self._shard, counts)


class TaskError(WorkError):
    """An error that a shard met on another machine; another try would repeat a permanent one."""

    def __init__(self, error_type: str, message: str, *, is_permanent: bool = False) -> None:
        super().__init__(message)
        self.error_type = error_type  # type: ignore[misc]  # otherwise that of the class
        self.is_permanent = is_permanent


def is_permanent(error: Exception) -> bool:
    """Another try of a shard would repeat the error."""
    return error.is_permanent if isinstance(error, TaskError) else isinstance(error, _PERMANENT)


@contextmanager
def settling(shard: Shard, claims: Claims) -> Iterator[None]:
    """Settle a shard by what the block raises; afterwards its lease is no longer renewed."""
    log = _LOG.bind(job=shard.job, shard=shard.number, tries=shard.tries)
    started = time.monotonic()
    try:
        yield
    except (RunInterruptedError, JobDatabaseError):
        claims.release(shard)
    except LeaseLostError as error:
        log.info("shard left", reason=error.message)
        claims.release(shard)
    except Exception as error:  # recorded with the shard, which fails with it at the last try
        if is_permanent(error):
            log.error("shard failed", reason=headline(error))
            claims.fail(shard, error)
        else:
            died = isinstance(error, WorkerDiedError)
            delay = 0.0 if died else min(2.0**shard.tries, LONGEST_DELAY_SECONDS)
            reason, trace = headline(error), not isinstance(error, WorkError)
            log.error("shard will be tried again", delay=delay, reason=reason, exc_info=trace)
            claims.release(shard, error, delay)
    else:
        log.debug("shard done", seconds=round(time.monotonic() - started, 2))
    finally:
        claims.drop(shard)


class Worker:
    """Runs shards in this process, until ``stop`` is set.

    The settings limit the time of a step, the idle time, and growth after the first shard. A worker
    that exceeds one of them exits, and the service replaces it.
    """

    def __init__(
        self,
        claims: Claims,
        staging: StagingArea,
        tools: ToolCache,
        stop: threading.Event,
        settings: Settings,
    ) -> None:
        self._claims = claims
        self._staging = staging
        self._tools = tools
        self._stop = stop
        self._usage = Usage(os.getpid())
        self._settings = settings

    def work(self) -> None:
        """Run shards until the worker must stop, has grown too large, or is idle for too long."""
        idle_since = time.monotonic()
        idle_seconds = self._settings.job_idle_seconds
        with self._claims:
            while not self._stop.is_set() and time.monotonic() - idle_since < idle_seconds:
                shard = self._claims.claim()
                if shard is None:
                    self._stop.wait(POLL_SECONDS)
                    continue
                self._run(shard)
                gc.collect()
                if self._usage.growth() > self._settings.worker_max_growth_mb * 2**20:
                    _LOG.info("worker has grown", pid=os.getpid())
                    return
                idle_since = time.monotonic()

    def _run(self, shard: Shard) -> None:
        folder = self._staging.folder(shard.job)
        with (
            settling(shard, self._claims),
            StepTimer(self._settings.job_text_seconds) as timer,
        ):
            lines = read_shard(folder, shard.number).lines()
            with (
                InFlightLog(folder, shard.number, shard.tries) as in_flight,
                timer.marking_slow(in_flight),
            ):
                running = RunningShard(shard, self._claims, in_flight, timer, self._stop)
                tools = self._tools.tools(shard.request)
                if self._tools.makes_cycles(shard.request):
                    gc.enable()
                else:
                    gc.disable()
                running.complete(run_shard(shard, lines, tools, running))


def main() -> None:
    without_pandas()
    load_kernels()
    config, stop = read_config()
    lower_priority(config.settings.job_nice)
    # Garbage is collected between shards only, unless a parser makes cycles: a shard makes many
    # thousand lists and no cycles, and collecting takes 2 percent of its time.
    gc.collect()
    gc.freeze()
    gc.disable()
    settings = config.settings
    with shard_store(settings.store) as store:
        queue = JobQueue.of(open_database(database_url(settings)), settings)
        claims = Claims(config.owner, queue, stop)
        tools = ToolCache(settings, store)
        if config.tokenizer is not None:
            tools.load_tokenizer(config.tokenizer)
        Worker(claims, StagingArea.of(settings), tools, stop, settings).work()


if __name__ == "__main__":
    main()
