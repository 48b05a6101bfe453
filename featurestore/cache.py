"""A bounded cache of decoded records."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from featurestore.records import ParseRecord


class RecordCache:
    """Keeps the records used last, at most ``size`` of them. Safe for threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[str, ParseRecord] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    def get_many(self, keys: Sequence[str]) -> dict[str, ParseRecord]:
        """The cached records among ``keys``."""
        with self._lock:
            found = {key: self._items[key] for key in keys if key in self._items}
            for key in found:
                self._items.move_to_end(key)
        return found

    def put_many(self, records: Iterable[ParseRecord]) -> None:
        """Keep records, and let go of those used longest ago."""
        with self._lock:
            for record in records:
                self._items[record.key] = record
                self._items.move_to_end(record.key)
            while len(self._items) > self._size:
                self._items.popitem(last=False)
