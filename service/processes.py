"""Helper processes of the service: started like this one, and ended with it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

from syntax.extras import absent

OWN_ERROR: Final = 3
"""Exit code of a child process whose output is the error that it found."""

_PR_SET_PDEATHSIG: Final = 1

_ONE_OF_MANY: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    # torch: one thread each, for there is a process per core; and OpenMP's threads would not
    # survive the fork of a worker, which then waits for them for ever.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # torch.cuda.is_available() asks the driver's library without a CUDA context, which a process
    # that is to fork must not have.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


def python_command(module: str) -> list[str]:
    """Run a module with ``-P``: a folder ``service`` must not be taken for ours."""
    return [sys.executable, "-P", "-m", module]


def python_environment(**settings: str) -> dict[str, str]:
    path = os.pathsep.join(folder for folder in sys.path if folder)
    return {**os.environ, "PYTHONPATH": path, **_ONE_OF_MANY, **settings}


def how_ended(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with exit code {status}"


def lower_priority(steps: int) -> None:
    """Lower the priority of a helper: the service must answer while all cores parse."""
    os.nice(steps)


def without_pandas() -> None:
    """Keep pyarrow from importing pandas, for .2 s, to see whether an array is one of pandas.

    Only for processes of our own: pyarrow looks once, and finds none for the rest of the process.
    """
    import pyarrow as pa

    with absent("pandas"):
        pa.array([None])


def exit_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
