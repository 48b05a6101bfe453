"""The command ``parsebank``, also as ``python -m parsebank``, whatever lies in the current folder.

``python -m`` puts the current folder first on the module path, and so does an empty entry of
``PYTHONPATH``: a user's ``trainer.py``, ``service/`` or ``numpy.py`` would be taken for a package.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path


def main() -> None:
    """Entry point of the console script."""
    leave_current_folder()
    from clients.cli import main as run

    run()


def leave_current_folder() -> None:
    """Take the current folder off the module path, for this process and those that it starts.

    It stays if Parsebank itself lies there, as in a checkout.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    with suppress(FileNotFoundError):  # a folder that was deleted hides nothing
        here = Path.cwd().resolve()
        if here != Path(__file__).resolve().parents[1]:
            sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here]


if __name__ == "__main__":
    main()
