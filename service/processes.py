"""Helper processes of the service: started like this one, and ended with it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def python_command(module: str) -> list[str]:
    """Command line that runs one of our modules with this interpreter.

    ``-P``: a folder called ``service`` in the working directory must not be taken for ours.
    """
    return [sys.executable, "-P", "-m", module]


def python_environment(**settings: str) -> dict[str, str]:
    """This process's environment, with its module path and single-threaded BLAS."""
    path = os.pathsep.join(folder for folder in sys.path if folder)
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", **settings}


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, whatever it is doing then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
