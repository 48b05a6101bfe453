"""Parses and features on disk, queried with SQL, streamed to trainers.

Names are imported when they are first used, so that the command line starts without Arrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from featurestore.dataset.crossed import CrossedDataset
    from featurestore.dataset.dataset import FeatureDataset
    from featurestore.dataset.memory import MemoryDataset
    from featurestore.dataset.mixed import (
        TreebankTooLargeError,
        with_repeated,
        with_weighted_languages,
    )
    from featurestore.dataset.mixture import FeatureMixture
    from featurestore.dataset.parsed import ParsedDataset
    from featurestore.dataset.states import StatedDataset
    from featurestore.records import (
        DatasetHandle,
        DatasetInfo,
        Drop,
        ExampleRow,
        ParseRecord,
        Part,
        Transaction,
    )
    from featurestore.store import FeatureStore, open_store
    from featurestore.stream.iterator import FeatureStream
    from featurestore.stream.order import OrderPolicy
    from featurestore.tables.states import WordStates

__all__ = [
    "DEFAULT_STORE",
    "CrossedDataset",
    "DatasetHandle",
    "DatasetInfo",
    "Drop",
    "ExampleRow",
    "FeatureDataset",
    "FeatureMixture",
    "FeatureStore",
    "FeatureStream",
    "MemoryDataset",
    "OrderPolicy",
    "ParseRecord",
    "ParsedDataset",
    "Part",
    "StatedDataset",
    "Transaction",
    "TreebankTooLargeError",
    "WordStates",
    "open_store",
    "with_repeated",
    "with_weighted_languages",
]

DEFAULT_STORE: Final = "./parsebank-data"

_HOMES = {
    "CrossedDataset": "featurestore.dataset.crossed",
    "FeatureDataset": "featurestore.dataset.dataset",
    "FeatureMixture": "featurestore.dataset.mixture",
    "MemoryDataset": "featurestore.dataset.memory",
    "FeatureStore": "featurestore.store",
    "FeatureStream": "featurestore.stream.iterator",
    "OrderPolicy": "featurestore.stream.order",
    "ParsedDataset": "featurestore.dataset.parsed",
    "StatedDataset": "featurestore.dataset.states",
    "TreebankTooLargeError": "featurestore.dataset.mixed",
    "WordStates": "featurestore.tables.states",
    "open_store": "featurestore.store",
    "with_repeated": "featurestore.dataset.mixed",
    "with_weighted_languages": "featurestore.dataset.mixed",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "featurestore.records")), name)
