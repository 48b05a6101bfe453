"""The configuration of a process that claims shards.

The process reads it from standard input, as one line of JSON, and watches the pipe. When the pipe
closes, the service stops or is dead; the process then releases its shards and exits.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Final

from pydantic import BaseModel

from service.logs import own_process
from service.processes import die_with
from service.settings import Settings

GRACE_SECONDS: Final = 20.0
"""Seconds that a worker has to finish its text or commit after it is told to stop."""


class WorkerConfig(BaseModel):
    """Configuration of a worker.

    Attributes:
        owner: Name under which it claims shards.
        parent: Process id of the service; the worker ends with it.
    """

    owner: str
    parent: int
    settings: Settings


def read_config() -> tuple[WorkerConfig, threading.Event]:
    """Read the configuration of this process, and start to watch the pipe.

    Returns:
        The configuration, and an event that is set when the process must stop.
    """
    config = WorkerConfig.model_validate_json(sys.stdin.readline())
    die_with(parent=config.parent)
    own_process(config.settings.log_level, config.settings.log_format)
    for asked in (signal.SIGINT, signal.SIGTERM):
        # These signals reach every process of the service; the service stops this one itself.
        signal.signal(asked, signal.SIG_IGN)
    stop = threading.Event()
    threading.Thread(target=_watch_pipe, args=(stop,), daemon=True).start()
    return config, stop


def _watch_pipe(stop: threading.Event) -> None:
    """Stop the process when the service closes the pipe; exit after `GRACE_SECONDS`."""
    sys.stdin.read()
    stop.set()
    time.sleep(GRACE_SECONDS)
    os._exit(1)
