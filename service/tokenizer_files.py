"""Files of a tokenizer folder, which may hold anything.

Libraries open them with the interpreter's lock held: one that waits for a pipe's other end stops
every thread of the service.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from service.parsers.files import regular_file
from syntax.strict_json import parse_json


def check_files(folder: Path) -> None:
    """Refuse a folder with a pipe, a socket or a device in it."""
    with os.scandir(folder) as entries:
        paths = [Path(entry) for entry in entries]
    for path in sorted(paths):
        if path.exists() and not path.is_dir():
            regular_file(path)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one if there is no such file."""
    if not path.exists():
        return {}
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object")
    return content
