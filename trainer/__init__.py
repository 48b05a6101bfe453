"""Models that read syntax, and the loop that trains them from the feature store.

The package needs the extra ``train`` (``pip install "parsebank[train]"``). `trainer.api` has what
scripts and notebooks call; these names are here too, imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trainer.api import (
        evaluate,
        evaluate_crossed,
        load_run,
        predict,
        predict_stored,
        train,
        train_seeds,
    )
    from trainer.results import FinishedRun

__all__ = [
    "FinishedRun",
    "evaluate",
    "evaluate_crossed",
    "load_run",
    "predict",
    "predict_stored",
    "train",
    "train_seeds",
]

_API: Final = "trainer.api"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_API), name)
