"""Finding the parts of a benchmark by the names of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from clients.benchmarks.base import ANY, Part
from clients.files import ENDINGS, plain_path
from syntax.errors import SpecError

WHOLE: Final = "whole"
"""The split of a file that names none."""


def named_parts(folder: Path, *, patterns: Sequence[str], lang: str = ANY) -> list[Part]:
    """Parts of one file each, from names below ``folder``.

    Args:
        folder: Where to look.
        patterns: Regular expressions of a file's path below the folder, with the groups ``split``
            and ``lang``; as many folders down as a pattern has slashes. The ending of a packed
            file is left out.
        lang: The language of a pattern without ``lang``.
    """
    found = [match for pattern in patterns for match in _matches(folder, pattern)]
    return [_part(match, path, lang) for match, path in found]


def files_like(folder: Path, pattern: str) -> tuple[Path, ...]:
    """The files below a folder whose path, but for the ending of a packed file, fits a glob.

    Raises:
        SpecError: A file is there twice, packed in different ways.
    """
    found: dict[Path, Path] = {}
    for path in sorted(path for end in ("", *ENDINGS) for path in folder.glob(pattern + end)):
        other = found.setdefault(plain_path(path), path)
        if other != path:
            raise SpecError(f"{path} and {other.name} are one file, packed and not; remove one")
    return tuple(found.values())


def _matches(folder: Path, pattern: str) -> Iterator[tuple[re.Match[str], Path]]:
    for path in folder.glob("/".join("*" * (pattern.count("/") + 1))):
        match = re.fullmatch(pattern, plain_path(path).relative_to(folder).as_posix())
        if match and path.is_file():
            yield match, path


def _part(match: re.Match[str], path: Path, lang: str) -> Part:
    named = match.groupdict()
    return Part(named.get("split") or WHOLE, named.get("lang") or lang, (path,))
