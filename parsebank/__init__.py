"""The public names of Parsebank in one place.

    >>> import parsebank
    >>> parsebank.DependencyTree([2, 0, 2], ["nsubj", "root", "punct"]).parents.tolist()
    [1, -1, 1]

They live in the packages `syntax`, `featurestore`, `clients` and `trainer`, and are imported when
they are first used, so that the import is quick and needs no torch.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from clients import AsyncClient, Client, ProgressBar
    from featurestore import FeatureDataset, FeatureStore, FeatureStream, open_store
    from syntax import (
        DependencyTree,
        ParsebankError,
        Sentence,
        Token,
        Word,
        ancestor_mask,
        format_conllu,
        parse_conllu,
        read_conllu,
        tree_depth,
        tree_distance,
        write_conllu,
    )
    from trainer import FinishedRun, evaluate, load_run, predict, train

    __version__: str

__all__ = [
    "AsyncClient",
    "Client",
    "DependencyTree",
    "FeatureDataset",
    "FeatureStore",
    "FeatureStream",
    "FinishedRun",
    "ParsebankError",
    "ProgressBar",
    "Sentence",
    "Token",
    "Word",
    "ancestor_mask",
    "evaluate",
    "format_conllu",
    "load_run",
    "open_store",
    "parse_conllu",
    "predict",
    "read_conllu",
    "train",
    "tree_depth",
    "tree_distance",
    "write_conllu",
]

PACKAGES: Final = ("syntax", "featurestore", "service", "clients", "trainer")
"""The packages beside this one."""

_HOMES: Final = {
    "AsyncClient": "clients",
    "Client": "clients",
    "FeatureDataset": "featurestore",
    "FeatureStore": "featurestore",
    "FeatureStream": "featurestore",
    "FinishedRun": "trainer",
    "ProgressBar": "clients",
    "evaluate": "trainer",
    "load_run": "trainer",
    "open_store": "featurestore",
    "predict": "trainer",
    "train": "trainer",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("parsebank")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _check_packages()
    return getattr(import_module(_HOMES.get(name, "syntax")), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def _check_packages() -> None:
    """Check that no module of the user's hides a package of ours.

    Raises:
        ImportError: One does; it has not been imported.
    """
    folder = Path(__file__).resolve().parents[1]
    for package in PACKAGES:
        spec = find_spec(package)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is not None and origin != folder / package / "__init__.py":
            raise ImportError(
                f"{origin} hides Parsebank's package {package!r}; rename it, or run Python in "
                "another folder",
                name=package,
                path=str(origin),
            )
