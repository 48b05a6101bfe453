"""Pieces and matrices from parses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featurestore.tables.encode.examples import LARGEST_MATRIX
from service.pipeline.records import FeatureRequest, ItemFeatures, MatrixName, Pieces
from service.settings import Settings
from service.tokenizers import LoadedTokenizer, PieceArrays
from syntax import Parse
from syntax.alignment import segment_features
from syntax.errors import ParsebankError, TextTooLongError
from syntax.matrices.tree import matrices_of_one, one_forest
from syntax.subwords import POLICIES


@dataclass
class MatrixBudget:
    """Room for the matrices of an answer.

    Attributes:
        largest: Most nodes of a text or example with matrices.
        cells: Matrix cells left for the rest of the answer.
        setting: Setting that limits them, for messages.
    """

    largest: int
    cells: int
    setting: str

    @classmethod
    def of(cls, settings: Settings, packed: bool = False) -> MatrixBudget:
        """Budget of an answer; a cell takes three bytes as JSON, and one byte or bit packed."""
        if packed:
            return cls(LARGEST_MATRIX, settings.max_packed_matrix_mb << 20, "max_packed_matrix_mb")
        return cls(settings.max_matrix_pieces, settings.max_matrix_cells, "max_matrix_cells")

    def claim(self, size: int, cells: int, measured: str, advice: str) -> None:
        """Reserve cells for a text of ``size`` nodes; the error has ``measured`` and ``advice``."""
        if size > self.largest or cells > self.cells:
            raise TextTooLongError(
                f"{measured}; matrices are answered for at most {self.largest}, and this answer "
                f"has room for {self.cells} more cells ({self.setting}). {advice}",
                pieces=size,
                limit=self.largest,
                room=self.cells,
            )
        self.cells -= cells


def derive(
    items: Sequence[ItemFeatures | ParsebankError],
    tokenizer: LoadedTokenizer | None,
    request: FeatureRequest,
    budget: MatrixBudget,
) -> list[ItemFeatures | ParsebankError]:
    """Add pieces and matrices to bare parses; an item that fails becomes its error.

    Without a tokenizer, matrices are over words. The budget is that of the whole answer.
    """
    texts = [item.parse.text for item in items if isinstance(item, ItemFeatures)]
    encoded = iter([None] * len(texts) if tokenizer is None else tokenizer.encode_batch(texts))
    derived: list[ItemFeatures | ParsebankError] = []
    for item in items:
        if isinstance(item, ParsebankError):
            derived.append(item)
            continue
        pieces = next(encoded)
        try:
            derived.append(_derive_one(item, pieces, request, budget))
        except ParsebankError as error:
            derived.append(error)
    return derived


def _derive_one(
    item: ItemFeatures, encoded: PieceArrays | None, request: FeatureRequest, budget: MatrixBudget
) -> ItemFeatures:
    pieces = None if encoded is None else align_pieces(item.parse, *encoded, request.policy)
    matrices: Mapping[str, NDArray[Any]] = {}
    if request.matrices:
        parents = item.parse.parents() if pieces is None else pieces.parents
        size = len(parents)
        budget.claim(
            size,
            sum(size if name == "depth" else size * size for name in request.matrices),
            f"the text has {size} pieces",
            "Send shorter or fewer texts, or derive the matrices from the heads",
        )
        source = None if pieces is None else pieces.source
        matrices = shown_matrices(parents, source, request.matrices)
    return replace(item, pieces=pieces, matrices=matrices)


def align_pieces(
    parse: Parse, input_ids: NDArray[np.int32], offsets: NDArray[np.int32], policy: str
) -> Pieces:
    """Align pieces, *shape* (L,), with spans, *shape* (L, 2), to words, and build their forest."""
    features = segment_features(parse, input_ids, offsets)
    parents, source = POLICIES[policy](features.head, features.word_ids)
    # -2 marks a piece without a word, which is a root here.
    return Pieces(
        input_ids=features.input_ids,
        offsets=features.offsets,
        word_ids=features.word_ids,
        parents=np.maximum(parents, -1),
        source=source,
        features=features,
    )


def shown_matrices(
    parents: NDArray[np.int32], source: NDArray[np.int32] | None, names: Sequence[MatrixName]
) -> dict[str, NDArray[Any]]:
    """Matrices of a forest, in which each node has the row and column of its source.

    Pairs without a path have the dtype's maximum as distance.
    """
    made = matrices_of_one(one_forest(parents, source), names)
    return {name: made[name] for name in names}
