"""How long one step of a shard may take, and what ends a process that takes longer."""

from __future__ import annotations

import signal
from typing import Final, Self

STEP_CHARACTERS: Final = 8_000
"""Text that is parsed in one step, unless a text alone is longer."""


class StepTimer:
    """Ends this process by SIGALRM when a step takes too long; a context manager.

    A step is one group of texts, or any other work between two heartbeats: load a
    parser, align some texts, commit. The timer is the kernel's, whose signal ends a process even
    while a parser's library holds the interpreter. The texts in flight are on disk by then
    (`service.jobs.in_flight`), and the shard is run again.

    Args:
        seconds: How long a step may take; texts of more than `STEP_CHARACTERS` in proportion.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> Self:
        self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def restart(self, characters: int = 0, waiting: float = 0.0) -> None:
        """Begin a step.

        Args:
            characters: Length of the texts that are parsed in it.
            waiting: Seconds for which it may wait besides, as for a database that is away.
        """
        longer = max(1.0, characters / STEP_CHARACTERS)
        signal.setitimer(signal.ITIMER_REAL, self._seconds * longer + waiting)
