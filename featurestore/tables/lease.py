"""The lease of a stream on the version that it reads: no vacuum takes its files meanwhile."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Final

from featurestore.tables.pins import PinTable
from featurestore.tables.root import StoreRoot
from syntax.errors import StoreError

_LOG: Final = logging.getLogger(__name__)

LOOK_SECONDS: Final = 600.0
"""Time between two looks of a stream at its files: a vacuum spares them for an hour at least."""


class Lease:
    """Keeps the files of one version of a dataset for as long as `renew` is called.

    Nothing is written while the newest version has the files too; once a compaction or deletion has
    replaced one, the version is pinned for `featurestore.tables.pins.LEASE_HOURS`, again and again.
    All streams over one version share that pin, and none takes it away: it ends by itself, so that
    a process that died keeps nothing for good.

    Args:
        table: Folder of the dataset's table below ``datasets``.
        looked: Time of the last look at the newest version, in seconds since 1970.
    """

    def __init__(
        self,
        root: StoreRoot,
        table: str,
        version: int,
        paths: Collection[str],
        looked: float = 0.0,
    ) -> None:
        self._root, self._table, self._version = root, table, version
        self._paths, self._looked = paths, looked
        self._is_warned = False

    def renew(self) -> None:
        """Look if the files need the lease, unless the last look was a short time ago.

        A store that cannot be written is streamed without one, with a warning.
        """
        if time.time() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.time()
        try:
            PinTable(self._root).lease(self._table, self._version, self._paths)
        except StoreError as error:
            if not self._is_warned:
                _LOG.warning(
                    "version %d of %s has been replaced, and this stream cannot keep a vacuum from "
                    "deleting its files: %s; vacuum with an --older-than above the length of your "
                    "run, or pin the version",
                    *(self._version, self._table, error),
                )
            self._is_warned = True
