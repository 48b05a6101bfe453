"""Facts about a UD treebank in its README."""

from __future__ import annotations

from pathlib import Path

_METADATA = "=== Machine-readable metadata"


def readme_metadata(folder: Path) -> dict[str, str]:
    """The ``Key: value`` lines at the end of a treebank's README; none where there is no README."""
    for name in ("README.md", "README.txt"):
        path = folder / name
        if path.is_file():
            _, _, metadata = path.read_text(encoding="utf-8", errors="replace").partition(_METADATA)
            lines = (line.partition(":") for line in metadata.splitlines())
            return {key.strip(): value.strip() for key, _, value in lines if value.strip()}
    return {}
