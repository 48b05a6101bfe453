"""From parses to pieces and matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.pipeline.records import ItemFeatures, MatrixName, Pieces
from service.settings import Settings
from service.tokenizers import LoadedTokenizer
from syntax import Parse
from syntax.alignment import segment_features
from syntax.errors import ParsebankError, TextTooLongError
from syntax.matrices import ancestor_mask, tree_depth, tree_distance
from syntax.subwords import POLICIES

_MATRICES = {"distance": tree_distance, "depth": tree_depth, "ancestor": ancestor_mask}


class Deriver:
    """Adds pieces and matrices to the items of one answer.

    Args:
        settings: How large matrices may be.
        tokenizer: Makes the pieces; without it matrices are over words.
        policy: Name in `syntax.subwords.POLICIES`.
        matrices: Which ones.
    """

    def __init__(
        self,
        settings: Settings,
        tokenizer: LoadedTokenizer | None,
        policy: str,
        matrices: Sequence[MatrixName],
    ) -> None:
        self._tokenizer = tokenizer
        self._policy = policy
        self._matrices = matrices
        self._largest = settings.max_matrix_pieces
        self._room = settings.max_matrix_cells

    def derive(
        self, items: Iterable[ItemFeatures | ParsebankError]
    ) -> list[ItemFeatures | ParsebankError]:
        """Complete the items; one that cannot be completed becomes its error."""
        listed = list(items)
        if self._tokenizer is not None:
            listed = self._with_pieces(listed, self._tokenizer)
        return [self._with_matrices(item) for item in listed] if self._matrices else listed

    def _with_pieces(
        self, items: list[ItemFeatures | ParsebankError], tokenizer: LoadedTokenizer
    ) -> list[ItemFeatures | ParsebankError]:
        parses = [item.parse for item in items if isinstance(item, ItemFeatures)]
        encoded = iter(tokenizer.encode_batch([parse.text for parse in parses]))
        return [
            item
            if isinstance(item, ParsebankError)
            else replace(item, pieces=hang_pieces(item.parse, *next(encoded), self._policy))
            for item in items
        ]

    def _with_matrices(self, item: ItemFeatures | ParsebankError) -> ItemFeatures | ParsebankError:
        if isinstance(item, ParsebankError):
            return item
        pieces = item.pieces
        size = item.parse.word_count if pieces is None else len(pieces.parents)
        if (error := self._claim_room(size)) is not None:
            return error
        if pieces is None:
            return replace(item, matrices=tree_matrices(item.parse.parents(), self._matrices))
        own = tree_matrices(pieces.parents, self._matrices)
        shown = {name: _reindex(matrix, pieces.source) for name, matrix in own.items()}
        return replace(item, matrices=shown)

    def _claim_room(self, size: int) -> TextTooLongError | None:
        cells = sum(size if name == "depth" else size * size for name in self._matrices)
        if size <= self._largest and cells <= self._room:
            self._room -= cells
            return None
        return TextTooLongError(
            f"the text has {size} pieces; matrices are answered for at most {self._largest}, and "
            f"this answer has room for {self._room} more cells. Send shorter or fewer texts, or "
            "derive the matrices from the heads",
            pieces=size,
            limit=self._largest,
            room=self._room,
        )


def hang_pieces(
    parse: Parse, input_ids: NDArray[np.int32], offsets: NDArray[np.int32], policy: str
) -> Pieces:
    """Align pieces to words and hang them as a subword policy says.

    Args:
        parse: The parsed text.
        input_ids: Pieces of the same text. *Shape:* (L,).
        offsets: Their character spans. *Shape:* (L, 2).
        policy: Name in `syntax.subwords.POLICIES`.

    Raises:
        TreeError: The parse holds a sentence that is no tree.
    """
    features = segment_features(parse, input_ids, offsets)
    parents, source = POLICIES[policy](features.head, features.word_ids)
    # -2 marks a piece without a word; on its own such a piece is simply one more root.
    return Pieces(
        input_ids=features.input_ids,
        offsets=features.offsets,
        word_ids=features.word_ids,
        parents=np.maximum(parents, -1),
        source=source,
    )


def tree_matrices(
    parents: NDArray[np.int32], names: Sequence[MatrixName]
) -> dict[str, NDArray[Any]]:
    """Matrices of a forest; pairs without a path have the dtype's maximum as distance."""
    return {name: _MATRICES[name](parents) for name in names}


def _reindex(matrix: NDArray[Any], source: NDArray[np.int32]) -> NDArray[Any]:
    """Let each piece show the row (and column) of its source."""
    return matrix[np.ix_(*(source,) * matrix.ndim)]
