"""A bounded cache of decoded records."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from featurestore.records import ParseRecord


class RecordCache:
    """Keeps the records used last, at most ``size`` of them. Safe for threads.

    Attributes:
        generation: Grows whenever records were forgotten because they are no longer stored.
    """

    def __init__(self, size: int) -> None:
        self.generation = 0
        self._size = size
        self._items: OrderedDict[str, ParseRecord] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    def get_many(self, keys: Sequence[str]) -> dict[str, ParseRecord]:
        with self._lock:
            found = {key: self._items[key] for key in keys if key in self._items}
            for key in found:
                self._items.move_to_end(key)
        return found

    def keep_only(self, holds: Callable[[Sequence[str]], NDArray[np.bool_]]) -> None:
        """Forget the records whose keys are not held any more, and begin a generation."""
        with self._lock:
            self.generation += 1
            keys = list(self._items)
            for key, held in zip(keys, holds(keys).tolist(), strict=True):
                if not held:
                    del self._items[key]

    def put_many(self, records: Iterable[ParseRecord], generation: int | None = None) -> None:
        """Keep records, unless a newer generation than theirs began: they may be deleted."""
        with self._lock:
            if generation not in (None, self.generation):
                return
            for record in records:
                self._items[record.key] = record
                self._items.move_to_end(record.key)
            while len(self._items) > self._size:
                self._items.popitem(last=False)
