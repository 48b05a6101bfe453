"""The registry of tasks; nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Final

from syntax.registry import Registry
from trainer.options.task import TaskOptions
from trainer.switches import Switch


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """The parts of a registered task; its name is the default ``name`` of the options.

    A class may be ``module:name``, imported when it is used, so that recipes can be checked without
    torch. ``auto_class`` is transformers' that loads models of this task, such as
    ``AutoModelForTokenClassification``; without one, ``AutoModel`` alone loads them.
    """

    options: type[TaskOptions]
    task_class: type[Any] | str
    head_class: type[Any] | str
    auto_class: str | None = None
    switches: tuple[Switch, ...] = ()

    @property
    def task(self) -> type[Any]:
        """The class of targets and scorer, a `trainer.tasks.base.Task`."""
        return _loaded(self.task_class)

    @property
    def head(self) -> type[Any]:
        """The class of the torch module, a `trainer.tasks.base.Head`."""
        return _loaded(self.head_class)


def _loaded(found: type[Any] | str) -> type[Any]:
    kind: type[Any] = resolve_name(found) if isinstance(found, str) else found
    return kind


TASKS: Final[Registry[TaskEntry]] = Registry("task")
"""Every task by name. One more is a module, its options, and a line in `trainer.tasks`."""
