"""The task that runs one shard on a worker of the cluster."""

from __future__ import annotations

import signal
import threading
from typing import Final

from service.jobs.engines.dask.inbox import inbox
from service.jobs.engines.dask.line import Line, UnwantedError
from service.jobs.engines.dask.messages import Order, Ticket
from service.jobs.records import Counts, error_json
from service.jobs.shard import run_shard
from service.jobs.worker import is_permanent

_ONE_AT_A_TIME: Final = threading.Lock()
"""Parsing takes the interpreter's lock: several shards in one process would only be slower."""


def run_task(ticket: Ticket) -> None:
    """Run the shard that a ticket stands for; what comes of it is sent to the coordinator."""
    from distributed import get_worker

    with _ONE_AT_A_TIME, inbox(ticket.run) as box:
        line = Line(ticket, get_worker(), box)
        try:
            line.say("done", counts=_run(ticket, line).to_json())
        except UnwantedError:
            line.say("stopped")
        except Exception as error:  # recorded with the shard, and failed with it in the end
            line.say("failed", error=error_json(error), permanent=is_permanent(error))


def _run(ticket: Ticket, line: Line) -> Counts:
    from service.jobs.engines.dask.home import toolbox_for

    line.say("sign")
    toolbox = toolbox_for(ticket)
    order = line.ask("begin")
    assert isinstance(order, Order)
    lines, tools = order.staged.lines(), toolbox.tools(order.shard.request)
    with Watchman(ticket.lease_seconds) as watchman:
        return run_shard(order.shard, lines, tools, TaskSignals(order, line, watchman))


class Watchman:
    """Ends the process when a run gives no sign for the time of its lease; a context manager.

    It is the kernel's timer, whose signal ends a process even while a parser's library holds the
    interpreter. The nanny starts the worker again, and the shard is run elsewhere.

    Args:
        seconds: How long a run may be silent.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> Watchman:
        self.wind()
        return self

    def wind(self) -> None:
        """Begin to wait anew."""
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


class TaskSignals:
    """The `Signals` of one shard on the cluster.

    Args:
        order: Which shard it is.
        line: To the coordinator.
        watchman: Who ends the process if the run hangs.
    """

    def __init__(self, order: Order, line: Line, watchman: Watchman) -> None:
        self._order = order
        self._line = line
        self._watchman = watchman

    @property
    def suspects(self) -> frozenset[str]:
        """See `Signals.suspects`."""
        return self._order.suspects

    @property
    def doubtful(self) -> frozenset[str]:
        """See `Signals.doubtful`."""
        return self._order.doubtful

    def beat(self) -> None:
        """See `Signals.beat`.

        Raises:
            UnwantedError: The run shall end.
        """
        self._watchman.wind()
        self._line.sign()

    def watch(self, *keys: str) -> None:
        """See `Signals.watch`.

        Once a worker has died on the shard, the coordinator has noted the texts before they are
        touched; before that, the note is sent and not waited for.
        """
        if self._order.shard.tries > 1 and keys:
            self._line.ask("watch", keys=keys, wait=True)
        else:
            self._line.say("watch", keys=keys, wait=False)

    def announce(self, plan: Counts) -> None:
        """See `Signals.announce`.

        Raises:
            UnwantedError: The shard is not this run's any more.
        """
        self._line.ask("announce", plan=plan.to_json())
        self._watchman.wind()
