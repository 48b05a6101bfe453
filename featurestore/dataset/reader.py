"""Reader of the examples of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from featurestore.stream.window import Window
from featurestore.tables.schema import MATRIX_BLOBS, TOKENS, VECTORS

if TYPE_CHECKING:
    from featurestore.dataset.dataset import FeatureDataset

_VECTORS: Final = tuple(name for name in VECTORS if name != "offsets")


class ExampleReader:
    """Reads examples of a dataset by their positions in sequence order."""

    def __init__(
        self,
        data: FeatureDataset,
        stored: bool = False,
        offsets: bool = False,
        tokens: bool = False,
    ) -> None:
        self._data = data
        labels = [label.name for label in data.labels]
        further = (
            *(MATRIX_BLOBS if stored else ()),
            *(("offsets",) if offsets else ()),
            *(TOKENS if tokens else ()),
        )
        self._columns = ["example_id", "segment_lengths", *_VECTORS, *further, *labels]

    def fetch(self, examples: NDArray[np.int64], is_wanted: Callable[[], bool]) -> None:
        self._data.fetch(examples, is_wanted)

    def read(self, examples: NDArray[np.int64]) -> Window:
        self._data.fetch(examples)
        files = self._data.stored_files(self._columns, examples)
        window = Window.of(files, len(examples), self._data.labels)
        if self._data.rows.repeat is None:
            return window
        repeats = self._data.rows.repeat[examples].tolist()
        # What is drawn for an example goes by its name, and is to be drawn anew.
        names = [
            f"{name} (repeated {times})" if times else name
            for name, times in zip(window.example_ids, repeats, strict=True)
        ]
        return replace(window, example_ids=names)
