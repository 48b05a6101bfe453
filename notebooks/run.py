"""Run notebooks from top to bottom and keep their outputs: ``python notebooks/run.py [FILE...]``.

Each runs in an empty folder. Outputs name that folder ``.`` and have no times, so that a second
run changes little.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

FOLDER: Final = Path(__file__).parent
NOTEBOOKS: Final = sorted(FOLDER.glob("*.ipynb"))
SECONDS: Final = 900
"""Longest time of one cell."""


def executed(path: Path, folder: Path) -> Any:
    """The notebook with the outputs of a run in ``folder``.

    Raises:
        CellExecutionError: A cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    # Not `cwd=` alone: the kernel's module path must not begin with this folder.
    os.environ["PYTHONSAFEPATH"] = "1"
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).clear()
            output.pop("transient", None)
    text = json.dumps(notebook, ensure_ascii=False)
    return nbformat.from_dict(json.loads(text.replace(str(folder), ".")))


def main() -> None:
    """Run the notebooks that are named, or all."""
    for path in [Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, Path(folder).resolve())
        nbformat.write(notebook, path)
        sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
