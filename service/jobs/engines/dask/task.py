"""The task that runs one shard on a worker of the cluster."""

from __future__ import annotations

import threading
from typing import Final

from service.jobs.engines.dask.inbox import inbox
from service.jobs.engines.dask.line import Line, UnwantedError
from service.jobs.engines.dask.messages import Order, Ticket
from service.jobs.records import Counts, error_json
from service.jobs.shard import run_shard
from service.jobs.steps import StepTimer
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

    with line.signs(), StepTimer(ticket.text_seconds) as timer:
        toolbox = toolbox_for(ticket)
        timer.restart(waiting=line.patience)
        order = line.ask("begin")
        assert isinstance(order, Order)
        timer.restart()
        lines, tools = order.staged.lines(), toolbox.tools(order.shard.request)
        return run_shard(order.shard, lines, tools, TaskSignals(order, line, timer))


class TaskSignals:
    """The `Signals` of one shard on the cluster.

    Args:
        order: Which shard it is.
        line: To the coordinator.
        timer: Ends the process if a step hangs; its nanny starts it again.
    """

    def __init__(self, order: Order, line: Line, timer: StepTimer) -> None:
        self._order = order
        self._line = line
        self._timer = timer

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
        self._timer.restart()
        self._line.check()

    def watch(self, *keys: str, characters: int = 0) -> None:
        """See `Signals.watch`.

        Once a worker has died on the shard, the coordinator has noted the texts before they are
        touched; before that, the note is sent and not waited for.
        """
        if self._order.shard.tries > 1 and keys:
            self._timer.restart(waiting=self._line.patience)
            self._line.ask("watch", keys=keys, wait=True)
        else:
            self._line.say("watch", keys=keys, wait=False)
        self._timer.restart(characters)

    def announce(self, plan: Counts) -> None:
        """See `Signals.announce`.

        Raises:
            UnwantedError: The shard is not this run's any more.
        """
        self._timer.restart(waiting=self._line.patience)
        self._line.ask("announce", plan=plan.to_json())
        self._timer.restart()
