"""A command that calls one of another package without an import."""

from __future__ import annotations

from typing import Any

import typer

from syntax.extras import missing_extra


def call_command(ctx: typer.Context, name: str, *arguments: str, problem: str, extra: str) -> None:
    """Run a command of the same command line; ``problem`` and ``extra`` tell why it is missing."""
    commands: Any = getattr(ctx.find_root().command, "commands", {})
    if name not in commands:
        raise missing_extra(problem, extra)
    commands[name].main([*arguments], prog_name=f"parsebank {name}", standalone_mode=False)
