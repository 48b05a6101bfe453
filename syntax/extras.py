"""Extras that are not installed, and the command that installs one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from syntax.errors import MissingExtraError
from syntax.strict_json import parse_json

DISTRIBUTION: Final = "parsebank"


def missing_extra(problem: str, extra: str, **detail: Any) -> MissingExtraError:
    """The error for a missing extra; the problem is such as ``pictures need matplotlib``."""
    message = f"{problem}; run `{install_command(extra)}`"
    return MissingExtraError(message, extra=extra, **detail)


@contextmanager
def absent(package: str) -> Iterator[None]:
    """Keep imports from finding an optional package that is not imported yet."""

    class Finder:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == package:
                raise ModuleNotFoundError(f"{name} is not wanted here", name=name)

    sys.meta_path.insert(0, Finder)
    try:
        yield
    finally:
        sys.meta_path.remove(Finder)


def install_command(extra: str, installed: Distribution | None = None) -> str:
    """``pip`` command that adds an extra to an installation, from its recorded origin (PEP 610)."""
    origin = _origin(installed)
    url = origin.get("url", "")
    if "dir_info" in origin:
        from urllib.request import url2pathname  # a fifth of the time of `parsebank --help`

        folder = Path(url2pathname(urlsplit(url).path))
        editable = ["-e"] if origin["dir_info"].get("editable") else []
        file = folder / "constraints.txt"
        constraints = ["-c", str(file)] if file.is_file() else []
        return shlex.join(["pip", "install", *constraints, *editable, f"{folder}[{extra}]"])
    requirement = f"{DISTRIBUTION}[{extra}]"
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        requirement += f" @ {vcs['vcs']}+{url}@{vcs['commit_id']}"
    elif url:
        requirement += f" @ {url}"
    return shlex.join(["pip", "install", requirement])


def _origin(installed: Distribution | None) -> dict[str, Any]:
    """Content of ``direct_url.json``; empty without one, as for a distribution from an index."""
    try:
        text = (installed or distribution(DISTRIBUTION)).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    return dict(parse_json(text)) if text else {}
