"""Progress bar for notebooks and scripts, of backfills and of training."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from clients.client.jobs import OVER, Job
from syntax.drawing.page import progress


@runtime_checkable
class Steps(Protocol):
    """Progress of training, as `trainer.progress.Report` has it."""

    @property
    def step(self) -> int:
        """Steps done."""

    @property
    def total_steps(self) -> int:
        """Steps planned."""

    @property
    def losses(self) -> Mapping[str, float]:
        """Loss by name; ``loss`` is what is minimised."""


class ProgressBar:
    """Shows progress of a job or a run.

    A notebook shows a bar in the cell's output, without widgets; a terminal, a line on standard
    error. Elsewhere nothing is shown.

    >>> client.wait(job.id, ProgressBar("backfill"))                      # doctest: +SKIP
    >>> train("sample", observers=[ProgressBar("training")])              # doctest: +SKIP
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown: Any = None

    def __call__(self, event: object) -> None:
        """Show a `Job`, or a report of training; other events change nothing."""
        if isinstance(event, Job):
            counts = event.counts
            note = f"{event.state}, {sum(counts.dropped.values())} dropped"
            self.show(counts.accounted, counts.examples, note, is_over=event.state in OVER)
        elif isinstance(event, Steps):
            note, is_over = f"loss {event.losses['loss']:.4f}", event.step >= event.total_steps
            self.show(event.step, event.total_steps, note, is_over=is_over)

    def show(self, done: int, total: int, note: str = "", *, is_over: bool = False) -> None:
        line = f"{self._title}: {done:,} of {total:,}" + (f", {note}" if note else "")
        if (display := _notebook()) is not None:
            content = {"text/plain": line, "text/html": progress(line, done, total)}
            if self._shown is None:
                self._shown = display(content, raw=True, display_id=True)
            else:
                self._shown.update(content, raw=True)
        elif sys.stderr.isatty():
            end = "\n" if is_over else ""
            sys.stderr.write(f"\r\x1b[K{line}{end}")
            sys.stderr.flush()


def _notebook() -> Any:
    shell = sys.modules.get("IPython")
    if shell is None or getattr(shell.get_ipython(), "kernel", None) is None:
        return None
    from IPython.display import display

    return display
