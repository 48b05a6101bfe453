"""What the manager and a process that claims shards agree on.

It is started with its orders on standard input, one line of JSON, and watches that pipe: when it
closes, the service stops or is dead, and the process gives its shards back and ends.
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
"""How long a worker that was told to end may finish the text or commit in hand."""


class Orders(BaseModel):
    """What a worker is started with.

    Attributes:
        owner: Name under which it claims shards.
        parent: Process id of the service; the worker does not outlive it.
        settings: The service's settings.
    """

    owner: str
    parent: int
    settings: Settings


def take_orders() -> tuple[Orders, threading.Event]:
    """Read the orders of this process, and begin to watch for its end.

    Returns:
        The orders, and what is set once the process shall end.
    """
    orders = Orders.model_validate_json(sys.stdin.readline())
    die_with(parent=orders.parent)
    own_process(orders.settings.log_level, orders.settings.log_format)
    for asked in (signal.SIGINT, signal.SIGTERM):
        # Sent to every process of the service at once; it is for the service to stop this one.
        signal.signal(asked, signal.SIG_IGN)
    stop = threading.Event()
    threading.Thread(target=_watch_pipe, args=(stop,), daemon=True).start()
    return orders, stop


def _watch_pipe(stop: threading.Event) -> None:
    """Ask the process to end when the service closes the pipe, and end it if it does not."""
    sys.stdin.read()
    stop.set()
    time.sleep(GRACE_SECONDS)
    os._exit(1)
