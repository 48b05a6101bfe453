"""Replaces Python arguments in messages by the options of the command that shows them.

For `` `parser=NAME` `` the command line shows ``--parser NAME``, or ``--set parser=NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final

_ARGUMENT: Final = re.compile(r"`([a-z_]+)=([^`]*)`")

_FIELD: Final = re.compile(r"\bbody\.([a-z_]+)(?:\.\d+)*")

_COMMAND: Final[ContextVar[Any]] = ContextVar("command", default=None)


def speak_for(command: Any, arguments: Sequence[str]) -> None:
    """Set the command whose options messages name; ``arguments`` may begin with sub-commands."""
    for argument in arguments:
        if argument not in getattr(command, "commands", {}):
            break
        command = command.commands[argument]
    _COMMAND.set(command)


def spelled(message: str) -> str:
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
