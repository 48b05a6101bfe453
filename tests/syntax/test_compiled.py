"""Compiled functions where the installation and the home folder are somebody else's."""

from __future__ import annotations

import copy as copies
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from syntax.trees import mst

ROOT = Path(__file__).parents[2]
NOBODY = 65534
PROGRAM = """
import ctypes, os, sys
if os.getuid() == 0:
    # Root without capabilities is an ordinary user, who happens to own the interpreter's files.
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None, use_errno=True).capset(header, nothing) == 0
sys.path.insert(0, {copy!r})
import syntax.matrices, syntax.alignment, syntax.contrast, syntax.batches
assert syntax.__file__.startswith({copy!r})
import numpy as np
depth = syntax.matrices.tree_depth(np.array([-1, 0, 1], np.int32))
print(depth.tolist(), os.environ.get("NUMBA_CACHE_DIR", ""))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """The package in folders that cannot be written to."""
    package = tmp_path / "installed" / "syntax"
    shutil.copytree(ROOT / "syntax", package, ignore=shutil.ignore_patterns("__pycache__"))
    folders = [package.parent, package, *(path for path in package.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    yield package.parent
    for folder in folders:
        folder.chmod(0o755)


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """A folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def run(copy: Path, temporary: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The kernels, imported and used by an ordinary user without a home."""
    return subprocess.run(
        [sys.executable, "-W", "always::RuntimeWarning", "-c", PROGRAM.format(copy=str(copy))],
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/proc",
            "TMPDIR": str(temporary),
            "PYTHONDONTWRITEBYTECODE": "1",
            **env,
        },
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_compiled_function_is_pickled_and_copied() -> None:
    scores = np.array([[0.0, 9.0, 1.0], [0.0, 0.0, 9.0], [0.0, 1.0, 0.0]])
    expected = mst._best_heads(scores.copy()).tolist()
    for other in (pickle.loads(pickle.dumps(mst._best_heads)), copies.copy(mst._best_heads)):
        assert other(scores.copy()).tolist() == expected


@pytest.mark.slow
def test_without_a_home_the_cache_is_in_a_temporary_folder(copy: Path, temporary: Path) -> None:
    first = run(copy, temporary)
    assert first.returncode == 0, first.stderr
    assert first.stderr.count("RuntimeWarning") == 1
    (folder,) = temporary.iterdir()
    assert str(folder) in first.stderr
    assert first.stdout == f"[0, 1, 2] {folder}\n"
    assert (folder.stat().st_mode & 0o777) == 0o700
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")}
    assert kept
    again = run(copy, temporary)
    assert again.stdout == first.stdout
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")} == kept


@pytest.mark.slow
def test_a_folder_of_another_user_is_not_used(copy: Path, temporary: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to make a folder that is another user's")
    planted = temporary / f"parsebank-numba-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    os.chown(planted, NOBODY, NOBODY)
    done = run(copy, temporary)
    assert done.returncode == 0, done.stderr
    assert not list(planted.iterdir())
    (other,) = (path for path in temporary.iterdir() if path != planted)
    assert done.stdout == f"[0, 1, 2] {other}\n"


@pytest.mark.slow
def test_a_cache_folder_of_the_users_choice_is_used(copy: Path, temporary: Path) -> None:
    chosen = temporary / "chosen"
    chosen.mkdir()
    done = run(copy, temporary, NUMBA_CACHE_DIR=str(chosen))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(chosen.rglob("*.nbc"))
