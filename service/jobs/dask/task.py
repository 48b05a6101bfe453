"""The task that runs one shard on a worker of the cluster."""

from __future__ import annotations

import threading
from typing import Final

from service.jobs.dask.channel import Assignment, TaskChannel, TaskSpec, UnwantedError, answer_queue
from service.jobs.records import Counts, error_json
from service.jobs.running import StepTimer
from service.jobs.shard import run_shard
from service.jobs.worker import is_permanent

_ONE_AT_A_TIME: Final = threading.Lock()
"""Parsing holds the interpreter's lock, so several shards in one process are slower."""


def run_task(spec: TaskSpec) -> None:
    """Run the shard of a task, and send the outcome to the coordinator."""
    from distributed import get_worker

    with _ONE_AT_A_TIME, answer_queue(spec.run) as answers:
        channel = TaskChannel(spec, get_worker(), answers)
        try:
            channel.say("done", counts=_run(spec, channel).to_json())
        except UnwantedError:
            channel.say("stopped")
        except Exception as error:  # recorded with the shard, which fails with it at the last try
            channel.say("failed", error=error_json(error), permanent=is_permanent(error))


def _run(spec: TaskSpec, channel: TaskChannel) -> Counts:
    from service.jobs.dask.worker_state import toolbox_for

    with channel.heartbeat(), StepTimer(spec.text_seconds) as timer:
        toolbox = toolbox_for(spec)
        timer.restart(waiting=channel.max_wait)
        assignment = channel.ask("begin")
        assert isinstance(assignment, Assignment)
        timer.restart()
        lines, tools = assignment.staged.lines(), toolbox.tools(assignment.shard.request)
        return run_shard(assignment.shard, lines, tools, TaskSignals(assignment, channel, timer))


class TaskSignals:
    """The `Signals` of one shard on the cluster.

    Args:
        assignment: The shard.
        channel: To the coordinator.
        timer: Ends the process if a step hangs; its nanny restarts it.
    """

    def __init__(self, assignment: Assignment, channel: TaskChannel, timer: StepTimer) -> None:
        self._assignment = assignment
        self._channel = channel
        self._timer = timer

    @property
    def fatal_keys(self) -> frozenset[str]:
        """See `Signals.fatal_keys`."""
        return self._assignment.fatal_keys

    @property
    def isolated_keys(self) -> frozenset[str]:
        """See `Signals.isolated_keys`."""
        return self._assignment.isolated_keys

    def beat(self) -> None:
        """See `Signals.beat`.

        Raises:
            UnwantedError: The run must stop.
        """
        self._timer.restart()
        self._channel.check()

    def watch(self, *keys: str, characters: int = 0) -> None:
        """See `Signals.watch`.

        After a death on the shard, the coordinator confirms the record before the texts are parsed;
        in the first try, the message is sent without waiting.
        """
        if self._assignment.shard.tries > 1 and keys:
            self._timer.restart(waiting=self._channel.max_wait)
            self._channel.ask("watch", keys=keys, wait=True)
        else:
            self._channel.say("watch", keys=keys, wait=False)
        self._timer.restart(characters)

    def announce(self, plan: Counts) -> None:
        """See `Signals.announce`.

        Raises:
            UnwantedError: This run no longer holds the shard.
        """
        self._timer.restart(waiting=self._channel.max_wait)
        self._channel.ask("announce", plan=plan.to_json())
        self._timer.restart()
