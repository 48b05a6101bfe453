"""A user's folder whose modules have the names of ours, and of a library that all of ours need."""

from __future__ import annotations

from pathlib import Path

NAMES = ("syntax", "featurestore", "service", "clients", "trainer", "numpy")


def hostile_folder(folder: Path) -> Path:
    """The folder, with modules that end the process that imports one; ``service`` is a package."""
    for name in NAMES:
        path = folder / name / "__init__.py" if name == "service" else folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"import os\nos.write(2, b'imported {name}')\nos._exit(86)\n", "utf-8")
    return folder
