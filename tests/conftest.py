"""Fixtures that every package's tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real treebanks, models, tokenizers and benchmarks (``PARSEBANK_DATA``)."""
    folder = os.environ.get("PARSEBANK_DATA")
    if not folder:
        pytest.skip("needs real data: set PARSEBANK_DATA to the folder that docs/data.md describes")
    path = Path(folder)
    if not (path / "treebanks").is_dir():
        pytest.fail(f"PARSEBANK_DATA={folder} has no treebanks/ in it")
    return path
