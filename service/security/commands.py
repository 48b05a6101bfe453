"""``parsebank keys``: make, list and revoke API keys."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from syntax.commands.tables import AsJson, print_rows

if TYPE_CHECKING:
    from service.security.keys import ApiKey, KeyFile

FileOption = Annotated[
    Path | None, typer.Option("--keys-file", help="File of hashed keys (PARSEBANK_KEYS_FILE).")
]

keys = typer.Typer(help="Add, list and revoke API keys.", no_args_is_help=True)


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of the key's owner, for logs and limits.")],
    rate_limit: Annotated[
        str | None,
        typer.Option(help="Rate limit of this key, as 600/minute. Default: the service's."),
    ] = None,
    role: Annotated[
        Literal["read", "parse", "admin"],
        typer.Option(help="read: read stored data; parse: also send texts; admin: everything."),
    ] = "admin",
    expires: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Last day on which the key is valid, in UTC."),
    ] = None,
    keys_file: FileOption = None,
) -> None:
    """Make a key and show it once; the file keeps only its hash.

    To replace a key, add another under the same name, hand it out, and revoke the old one by its
    id. A running service reads changes within two seconds.
    """
    last_day = None if expires is None else expires.date()
    if last_day is not None and last_day < datetime.now(UTC).date():
        raise typer.BadParameter(f"{last_day} is over; the key would never be valid")
    secret, key = _file(keys_file).add(name, rate_limit=rate_limit, expires=last_day, role=role)
    typer.echo(f"key {key.id} of {key.name}; it is not shown again:", err=True)
    typer.echo(secret)


@keys.command("list")
def list_keys(keys_file: FileOption = None, as_json: AsJson = False) -> None:
    """List names, ids, roles and limits of the keys."""
    rows = [
        {
            "id": key.id,
            "name": key.name,
            "role": key.role,
            "created": str(key.created),
            "expires": str(key.expires or "never"),
            "rate limit": key.rate_limit or "the service's",
            "state": _state(key),
        }
        for key in _file(keys_file).read()
    ]
    print_rows(rows, as_json)


@keys.command()
def revoke(
    key: Annotated[
        str, typer.Argument(metavar="NAME|ID", help="Id of a key, or a name for all its keys.")
    ],
    keys_file: FileOption = None,
) -> None:
    """Remove a key. A running service refuses it within two seconds."""
    for gone in _file(keys_file).revoke(key):
        typer.echo(f"revoked {gone.id} of {gone.name}")


def _file(path: Path | None) -> KeyFile:
    from service.security.keys import KeyFile
    from service.settings import read_settings
    from syntax.errors import SpecError

    named = path or read_settings().keys_file
    if named is None:
        raise SpecError("which file? Give --keys-file FILE, or set PARSEBANK_KEYS_FILE")
    return KeyFile(named)


def _state(key: ApiKey) -> str:
    from syntax.errors import UnauthorizedError

    try:
        key.check()
    except UnauthorizedError:
        return "disabled" if key.disabled else "expired"
    return "valid"
