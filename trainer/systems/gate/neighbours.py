"""Vectors of words, each with those of the nearest words of a target language (CL_Trans_GCN).

Near is by CSLS: twice the cosine less the mean cosine of the target's word to its nearest words of
the dataset (Conneau et al. 2018, https://openreview.net/forum?id=H196sainb, equation 2; its other
term is the same for all candidates). As in the release of GATE (``data/cltrans/find_knn.py``), both
spaces are centred, and the first 200,000 words of a file count.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from trainer.systems.orderfree.vectors import VectoredDataset, Vectors, vector_lines

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore

_FIRST: Final = 200_000
_AT_ONCE: Final = 1_024


class NeighbourDataset(VectoredDataset):
    """A dataset whose ``word_states`` are vectors of words and of their translations.

    A word of ``width`` numbers is followed by its ``neighbours`` nearest words of ``target``,
    nearest first; words of ``target`` are followed by themselves. *Shape:* (W, (1 + K) * D).
    """

    def __init__(
        self,
        store: FeatureStore,
        data: FeatureDataset,
        pattern: str,
        width: int,
        target: str,
        neighbours: int,
    ) -> None:
        self.made_of = (store, data, pattern, width, target, neighbours)
        self.target, self.neighbours = target, neighbours
        super().__init__(store, data, pattern, width)
        self.width = (1 + neighbours) * width

    def __reduce__(self) -> tuple[type[NeighbourDataset], tuple[Any, ...], dict[str, Any]]:
        return NeighbourDataset, self.made_of, self._kept_in_copies()

    def _read(self, lang: str, words: Iterable[str]) -> Vectors:
        own = super()._read(lang, words)
        if not own:
            return own
        words_WD = np.stack(list(own.values()))
        near_WKD = np.repeat(words_WD[:, None], self.neighbours, axis=1)
        if lang != self.target:
            source_SD, target_TD = (
                first_vectors(Path(self.pattern.replace("{lang}", one)), self.width)
                for one in (lang, self.target)
            )
            mean_D = _unit(source_SD).mean(0)
            centred_WD = _unit(words_WD.astype(np.float32)) - mean_D
            units_TD = _unit(target_TD)
            near_WK = nearest(centred_WD, units_TD - units_TD.mean(0), self.neighbours)
            near_WKD = target_TD[near_WK].astype(np.float16)
        joined = np.concatenate([words_WD[:, None], near_WKD], axis=1).reshape(len(own), -1)
        return dict(zip(own, joined, strict=True))


def first_vectors(path: Path, width: int) -> NDArray[np.float32]:
    """The first vectors of a file in fastText's text format. *Shape:* (T, ``width``)."""
    lines = islice(vector_lines(path, width), _FIRST)
    return np.stack([line.vector(width) for line in lines])


def nearest(
    words_WD: NDArray[np.float32], target_TD: NDArray[np.float32], count: int
) -> NDArray[np.int64]:
    """Rows of the targets nearest to each word by CSLS, nearest first. *Shape:* (W, ``count``)."""
    if len(target_TD) < count:
        raise SpecError(
            f"the target's file has {len(target_TD)} words, and model.neighbours is {count}; give "
            "a larger file"
        )
    words_WD, target_TD = _unit(words_WD), _unit(target_TD)
    among = min(count, len(words_WD))
    dense_T = np.concatenate(
        [
            np.partition(target_TD[at : at + _AT_ONCE] @ words_WD.T, -among)[:, -among:].mean(1)
            for at in range(0, len(target_TD), _AT_ONCE)
        ]
    )
    found = []
    for at in range(0, len(words_WD), _AT_ONCE):
        scores_WT = 2 * words_WD[at : at + _AT_ONCE] @ target_TD.T - dense_T
        near = np.argpartition(-scores_WT, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(scores_WT, near, 1), axis=1)
        found.append(np.take_along_axis(near, order, 1))
    return np.concatenate(found)


def _unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: NDArray[np.float32] = (vectors / (lengths + 1e-8)).astype(np.float32)
    return units
