"""Replaces Python arguments in messages by the options of the command that shows them.

A message names an argument in backticks, as in Python: `` `parser=NAME` ``. The command line shows
the option instead: ``--parser NAME``, or ``--set parser=NAME`` if the command has ``--set``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final

_ARGUMENT: Final = re.compile(r"`([a-z_]+)=([^`]*)`")

_FIELD: Final = re.compile(r"\bbody\.([a-z_]+)(?:\.\d+)*")
"""A field of a request in a message of the service."""

_COMMAND: Final[ContextVar[Any]] = ContextVar("command", default=None)
"""The current command."""


def speak_for(command: Any, arguments: Sequence[str]) -> None:
    """Set the command whose options messages name from now on.

    Args:
        command: The command, or a group of them.
        arguments: What follows on the command line; it may begin with commands of the group.
    """
    for argument in arguments:
        if argument not in getattr(command, "commands", {}):
            break
        command = command.commands[argument]
    _COMMAND.set(command)


def spelled(message: str) -> str:
    """A message with the options of the current command in place of Python arguments."""
    options = getattr(_COMMAND.get(), "params", ())
    message = _FIELD.sub(lambda found: _option(options, found[1], "") or found[0], message)
    return _ARGUMENT.sub(lambda found: _option(options, *found.groups()) or found[0], message)


def _option(options: Iterable[Any], argument: str, value: str) -> str | None:
    named = {option.name: option for option in options if option.param_type_name == "option"}
    if (option := named.get(argument)) is not None:
        name = max(option.opts, key=len)
        return name if option.is_flag or not value else f"{name} {value}"
    if any("--set" in option.opts for option in named.values()):
        value = value.lower() if value in ("True", "False") else value
        return f"--set {argument}={value or '...'}"
    return None
