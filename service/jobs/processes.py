"""Processes that claim shards: which an engine needs, and how they start and end.

A process reads its configuration from standard input, as one line of JSON, and watches the pipe.
When the pipe closes, the service stops or is dead; the process then releases its shards and exits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psutil
from pydantic import BaseModel

from service.logs import configure_process_logging
from service.processes import exit_with_parent, how_ended, python_command, python_environment
from service.settings import Settings
from syntax.errors import SpecError
from syntax.extras import missing_extra

_WORKER: Final = "service.jobs.worker"

GRACE_SECONDS: Final = 20.0
"""Seconds that a worker has to finish its text or commit after it is told to stop."""


def engine_of(settings: Settings) -> tuple[str, int]:
    """The module that claims shards, and how many processes run it at most."""
    if settings.engine == "local":
        return _WORKER, settings.job_workers
    if not settings.dask_scheduler:
        raise SpecError(
            "the engine `dask` needs the address of a running scheduler: set dask_scheduler "
            "(PARSEBANK_DASK_SCHEDULER, --scheduler), as tcp://host:8786"
        )
    if find_spec("distributed") is None:
        raise missing_extra(
            "the engine `dask` needs the package distributed, here and on every worker", "dask"
        )
    # One coordinator, however many workers the cluster has.
    return "service.jobs.dask.coordinator", min(1, settings.job_workers)


class WorkerConfig(BaseModel):
    """Configuration of a worker, which claims shards as ``owner`` and ends with ``parent``.

    It loads the ``tokenizer`` before it claims one.
    """

    owner: str
    parent: int
    settings: Settings
    tokenizer: str | None = None


def read_config() -> tuple[WorkerConfig, threading.Event]:
    """Read the configuration of this process, and start to watch the pipe.

    The event is set when the process must stop.
    """
    line = sys.stdin.readline()
    if not line:  # started ahead, and not needed
        os._exit(0)
    config = WorkerConfig.model_validate_json(line)
    exit_with_parent(parent=config.parent)
    configure_process_logging(config.settings.log_level, config.settings.log_format)
    for asked in (signal.SIGINT, signal.SIGTERM):
        # These signals reach every process of the service; the service stops this one itself.
        signal.signal(asked, signal.SIG_IGN)
    stop = threading.Event()
    threading.Thread(target=_watch_pipe, args=(stop,), daemon=True).start()
    return config, stop


def _watch_pipe(stop: threading.Event) -> None:
    """Stop the process when the service closes the pipe; exit with 0 after `GRACE_SECONDS`."""
    sys.stdin.read()
    stop.set()
    time.sleep(GRACE_SECONDS)
    os._exit(0)


class WorkerProcess:
    """A running process that claims shards, in a process group of its own.

    It is a fresh interpreter, not a fork: the service has threads, and its main module may be
    anybody's script. Start it from a thread that lives as long as the service, because Linux ends
    it with that thread.
    """

    def __init__(
        self,
        settings: Settings,
        module: str = _WORKER,
        tokenizer: str | None = None,
    ) -> None:
        self.started = time.monotonic()
        self._step_seconds = settings.job_text_seconds
        self._killed_because = ""
        self._outstayed = False
        self._process = _started_ahead(module) or _spawn(module)
        self.owner = owner_name(self._process.pid)
        config = WorkerConfig(
            owner=self.owner, parent=os.getpid(), settings=settings, tokenizer=tokenizer
        )
        self._write(config.model_dump_json() + "\n")

    @property
    def pid(self) -> int:
        """Process id, which is also its process group."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """The process runs; the first call after its end also reaps it."""
        return self._process.poll() is None

    @property
    def failed(self) -> bool:
        """It ended with an error or by a signal, other than that of `wait`."""
        return self._process.poll() not in (None, 0) and not self._outstayed

    @property
    def is_stopped(self) -> bool:
        """It lives, and a signal has stopped it."""
        try:
            return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)
        except psutil.Error:
            return False

    @property
    def cause(self) -> str:
        """The end of a process that failed, as a sentence."""
        code = self._process.poll() or 0
        if self._killed_because:
            reason = self._killed_because
        elif code == -signal.SIGALRM:
            reason = f"took longer than job_text_seconds ({self._step_seconds:g} s) for one step"
        elif code == -signal.SIGKILL:
            reason = f"{how_ended(code)}, perhaps because the machine's memory was short"
        elif code < 0:
            reason = how_ended(code)
        else:
            reason = f"{how_ended(code)}; the service's log has its error"
        return f"worker {self.pid} {reason}"

    def ask_to_stop(self) -> None:
        """Let it give its shard back and end."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def wait(self, seconds: float = GRACE_SECONDS) -> None:
        """Wait until it has ended; after ``seconds`` it is killed, and has not `failed`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self._outstayed = self.is_alive
        self.kill()

    def kill(self, because: str = "") -> None:
        """End it at once, with everything that it may have started; ``because`` is for `cause`."""
        if self._process.poll() is None:
            self._killed_because = because
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self.ask_to_stop()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once; the next look finds that
            self._process.stdin.write(line.encode("utf-8"))
            self._process.stdin.flush()


_ahead: Final[list[subprocess.Popen[bytes]]] = []


def start_ahead() -> None:
    """Start the first worker before its configuration is known: it imports and loads meanwhile.

    Linux ends it with the thread that started it, so that only the main thread does.
    """
    if not _ahead and threading.current_thread() is threading.main_thread():
        with contextlib.suppress(OSError):  # the manager tells it when it starts a worker
            _ahead.append(_spawn(_WORKER))


def end_ahead() -> None:
    """End the process that was started ahead, if no worker has become of it."""
    while _ahead:
        with _ahead.pop() as process:
            process.kill()


def _started_ahead(module: str) -> subprocess.Popen[bytes] | None:
    if not _ahead or module != _WORKER:
        return None
    if _ahead[0].poll() is None:
        return _ahead.pop()
    end_ahead()
    return None


def _spawn(module: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        python_command(module),
        stdin=subprocess.PIPE,
        process_group=0,
        env=python_environment(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1"),
    )


def owner_name(pid: int) -> str:
    return f"{_here()}:{pid}"


def is_gone(owner: str) -> bool:
    """Tell whether a worker of this machine has ended; false for one of another machine.

    There, only the lease tells.
    """
    place, _, pid = owner.rpartition(":")
    if place != _here():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _is_zombie(int(pid))


def _here() -> str:
    """The namespace of this process's ids: the host, and on Linux the container in it."""
    try:
        container = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        container = 0
    return f"{socket.gethostname()}/{container}"


def _is_zombie(pid: int) -> bool:
    """Tell whether a process has ended and its parent did not notice, as in some containers."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "Z"
