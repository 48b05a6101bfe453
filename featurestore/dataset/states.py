"""A dataset with states of its words, which a program with a frozen encoder writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from featurestore.dataset.dataset import ExampleReader, FeatureDataset
from featurestore.stream.window import Window
from featurestore.tables.states import StatesTable, WordStates
from syntax.fingerprint import fingerprint

if TYPE_CHECKING:
    from featurestore.store import FeatureStore

COMMIT_BYTES: Final = 64 << 20
"""Approximate size of a commit, which is held in memory."""


class StatedDataset(FeatureDataset):
    """A dataset whose streams give ``word_states``: a `WordStates` for each sequence.

    A stream holds the states of a pool of examples at a time (``pool``, in chunks of about 256k
    pieces), of 24 chunks at most; of 768 numbers that is at most 400 MB a chunk.

    Args:
        content: Everything that the states depend on beside text and words, as plain JSON: the
            fingerprint of the encoder, its layer, how texts are cut.
        width: Numbers of a state.
    """

    def __init__(
        self, store: FeatureStore, data: FeatureDataset, content: Mapping[str, Any], width: int
    ) -> None:
        super().__init__(store, data.card, data.version, data.rows, data.reader)
        self.states_content = {**content, "width": width}
        self.states = StatesTable(store.root, data.card, fingerprint(self.states_content), width)

    def __reduce__(self) -> tuple[type[StatedDataset], tuple[Any, ...], dict[str, Any]]:
        data = FeatureDataset(self._store, self.card, self.version, self.rows, self.reader)
        made_of = (self._store, data, self.states_content, self.states.width)
        return StatedDataset, made_of, self._kept_in_copies()

    @cached_property
    def fingerprints(self) -> dict[str, Any]:
        return {**super().fingerprints, "states": self.states.identity}

    def without_states(self) -> FeatureDataset:
        rows = self.rows.select(~self.states.holds(self.rows.keys))
        return FeatureDataset(self._store, self.card, self.version, rows, self.reader)

    def write(self, data: FeatureDataset, examples: Iterable[WordStates]) -> int:
        """Write states of ``data``, a commit at a time; return the number of examples written.

        Writers that race may both write an example; readers find one of the two, which are equal.
        After an error, earlier commits stay.
        """
        self._store.describe(self.states.identity, "states", self.states_content)
        left, done = iter(examples), 0
        while group := list(_about(COMMIT_BYTES, left)):
            self.states.append(data.rows.keys[done : done + len(group)], group)
            done += len(group)
        return done

    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> ExampleReader:
        return StatesReader(self, stored, offsets, tokens)


class StatesReader(ExampleReader):
    """Reads examples with the states of their words."""

    def __init__(
        self, data: StatedDataset, stored: bool = False, offsets: bool = False, tokens: bool = False
    ) -> None:
        super().__init__(data, stored, offsets, tokens)
        self._states, self._keys = data.states, data.rows.keys

    def read(self, examples: NDArray[np.int64]) -> Window:
        window = super().read(examples)
        states = self._states.read(self._keys[examples])
        return replace(window, labels={**window.labels, "word_states": states})


def _about(size: int, examples: Iterable[WordStates]) -> Iterable[WordStates]:
    for one in examples:
        yield one
        size -= one.states.nbytes
        if size <= 0:
            return
