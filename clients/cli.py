"""The command ``parsebank``: sub-commands that every installed package contributes.

An entry of the group ``parsebank.commands`` is a function ``register(app)``, which imports nothing
heavy, so that ``parsebank --help`` is quick and works whatever is missing.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points, requires, version
from pathlib import Path
from traceback import format_exception
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_name
from typer.models import CommandInfo

from clients.spelling import speak_for, spelled
from syntax.plugins import VARIABLE

COMMAND_GROUP = "parsebank.commands"

_DISTRIBUTION = "parsebank"
_API_KEY = "PARSEBANK_API_KEY"
_CALLED = {"models": ("export-parser", "train-parser")}  # commands that a command calls


class WholeSummaries(TyperGroup):
    """Lists commands with their whole summaries; typer cuts them at the end of the line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = [(name, one) for name, one in found if one and not one.hidden]
        rows = [(name, one.get_short_help_str(limit=1000)) for name, one in shown]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class ReadableErrors(WholeSummaries):
    """Prints what the user can repair as one message; everything else is a bug, with its trace."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        speak_for(command, rest)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            message = None if ctx.params.get("debug") else readable(error)
            if message is None:
                raise
            typer.echo(f"Error: {message}", err=True)
            raise typer.Exit(1) from error


def readable(error: Exception) -> str | None:
    """Message to the user; ``None`` when only a trace can help."""
    from syntax.errors import ParsebankError

    if isinstance(error, ParsebankError):
        return spelled(error.message)
    if isinstance(error, ModuleNotFoundError):
        return missing_extra(error.name or "")
    if isinstance(error, RecursionError):
        return "what was read is nested too deeply"
    if isinstance(error, OSError) and error.errno != errno.EPIPE and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error.strerror  # which no file is named with
    return None


def missing_extra(module: str) -> str | None:
    """Command that installs the smallest extra with a module; ``None`` if none has it."""
    from syntax.extras import install_command

    package = module.partition(".")[0]
    brought = [
        (len(names), extra)
        for extra, names in _extras().items()
        if any(name.startswith(package) for name in names)
    ]
    if not brought:
        return None
    _, extra = min(brought)
    return f"{package} is not installed; run `{install_command(extra)}`"


def _extras() -> dict[str, list[str]]:
    extras: dict[str, list[str]] = {}
    for requirement in requires(_DISTRIBUTION) or []:
        name, _, condition = requirement.partition(";")
        if "extra ==" in condition:
            extras.setdefault(condition.rpartition("==")[2].strip(" '\""), []).append(name)
    return extras


def build_app(words: Sequence[str] = ()) -> typer.Typer:
    """The whole command line; its help names packages that cannot be loaded.

    Args:
        words: The arguments; commands that they do not name may be left out.
    """
    app = typer.Typer(
        cls=ReadableErrors,
        help="Parse texts into Universal Dependencies, store features, and train transformers "
        "with syntax.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # help without rich, which takes as long to import as all the rest
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    failures = [_register(entry, app) for entry in sorted(entry_points(group=COMMAND_GROUP))]
    _keep_named(app, words)
    for group in app.registered_groups:
        group.cls = WholeSummaries
    broken = [failure for failure in failures if failure]
    app.info.epilog = f"Not available: {'; '.join(broken)}." if broken else None
    return app


def main() -> None:
    try:
        build_app(sys.argv[1:])(prog_name=_DISTRIBUTION)
    except Exception as error:
        typer.echo(trace(error), err=True)
        raise SystemExit(1) from None
    finally:
        if "duckdb" not in sys.modules:  # which reports what is left at the end as leaked
            gc.freeze()  # else the end looks through all that was imported, for .2 s


def trace(error: Exception) -> str:
    """Trace of an error for bug reports, without passwords: libraries quote URLs."""
    from syntax.errors import without_passwords

    return without_passwords("".join(format_exception(error)).rstrip("\n"))


def _register(entry: Any, app: typer.Typer) -> str | None:
    try:
        entry.load()(app)
    except ImportError as error:
        return f"the commands of {entry.name} ({error})"
    return None


def _keep_named(app: typer.Typer, words: Sequence[str]) -> None:
    """Keep the commands that the words name, if any: typer reads the signatures of all others."""
    named = {*words, *(name for word in words for name in _CALLED.get(word, ()))}
    commands = [one for one in app.registered_commands if _name(one) in named]
    groups = [one for one in app.registered_groups if one.name in named]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups


def _name(command: CommandInfo) -> str:
    return command.name or get_command_name(command.callback.__name__)  # type: ignore[union-attr]


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            is_eager=True,
            callback=lambda asked: _show_version() if asked else None,
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module that registers parsers, matrices, readers, systems or the like. "
            "Repeatable.",
            envvar=VARIABLE,
            show_envvar=True,
            callback=lambda names: _import_later(names or []),
        ),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            help="API key of a running service. Prefer the variable: other users of this machine "
            "can read command lines.",
            envvar=_API_KEY,
            show_envvar=True,
            callback=lambda key: _remember(key) if key else None,
        ),
    ] = None,
) -> None:
    pass


def _remember(api_key: str) -> None:
    os.environ[_API_KEY] = api_key


def _import_later(modules: list[str]) -> None:
    """Name the modules to this process and its children, which import them when needed."""
    if modules:
        os.environ[VARIABLE] = ",".join(modules)
        if (here := str(Path.cwd())) not in sys.path:
            sys.path.append(here)  # last: a folder here must not hide a package of ours


def _show_version() -> None:
    typer.echo(f"{_DISTRIBUTION} {version(_DISTRIBUTION)}")
    raise typer.Exit


if __name__ == "__main__":
    main()
