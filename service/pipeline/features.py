"""From parses to pieces and matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featurestore.tables.encode.examples import LARGEST_MATRIX
from service.pipeline.records import FeatureRequest, ItemFeatures, MatrixName, Pieces
from service.settings import Settings
from service.tokenizers import LoadedTokenizer, PieceArrays
from syntax import Parse
from syntax.alignment import project_labels, segment_features, token_words
from syntax.errors import ParsebankError, TextTooLongError
from syntax.matrices import ancestor_mask, tree_depth, tree_distance
from syntax.subwords import POLICIES

_MATRICES = {"distance": tree_distance, "depth": tree_depth, "ancestor": ancestor_mask}


@dataclass
class MatrixBudget:
    """The size that the matrices of an answer may still take.

    Attributes:
        largest: Most pieces of a text with matrices.
        cells: Matrix cells left for the remaining texts.
        setting: Setting that limits them, for messages.
    """

    largest: int
    cells: int
    setting: str

    @classmethod
    def of(cls, settings: Settings, packed: bool) -> MatrixBudget:
        """The budget of one answer.

        As JSON a cell takes three bytes and an object in the client; packed it takes one byte or
        one bit.
        """
        if packed:
            return cls(LARGEST_MATRIX, settings.max_packed_matrix_mb << 20, "max_packed_matrix_mb")
        return cls(settings.max_matrix_pieces, settings.max_matrix_cells, "max_matrix_cells")

    def claim(self, size: int, matrices: Sequence[MatrixName]) -> None:
        """Reserve the matrices of a text of ``size`` pieces.

        Raises:
            TextTooLongError: The budget is exceeded.
        """
        cells = sum(size if name == "depth" else size * size for name in matrices)
        if size > self.largest or cells > self.cells:
            raise TextTooLongError(
                f"the text has {size} pieces; matrices are answered for at most {self.largest}, "
                f"and this answer has room for {self.cells} more cells ({self.setting}). Send "
                "shorter or fewer texts, or derive the matrices from the heads",
                pieces=size,
                limit=self.largest,
                room=self.cells,
            )
        self.cells -= cells


class Deriver:
    """Adds pieces and matrices to the items of one answer.

    Args:
        settings: Limits of matrices.
        tokenizer: Without one, matrices are over words.
        request: Policy and matrices.
    """

    def __init__(
        self, settings: Settings, tokenizer: LoadedTokenizer | None, request: FeatureRequest
    ) -> None:
        self._tokenizer = tokenizer
        self._policy = request.policy
        self._matrices = request.matrices
        self._budget = MatrixBudget.of(settings, request.packed)

    def derive(
        self, items: Iterable[ItemFeatures | ParsebankError]
    ) -> list[ItemFeatures | ParsebankError]:
        """Complete the items; an item that fails becomes its error."""
        listed = list(items)
        encoded = iter(self._encode(listed))
        return [
            item if isinstance(item, ParsebankError) else self._complete(item, next(encoded))
            for item in listed
        ]

    def _encode(
        self, items: Sequence[ItemFeatures | ParsebankError]
    ) -> Sequence[PieceArrays | None]:
        """The pieces of each parse among the items; ``None`` without a tokenizer."""
        texts = [item.parse.text for item in items if isinstance(item, ItemFeatures)]
        if self._tokenizer is None:
            return [None] * len(texts)
        return self._tokenizer.encode_batch(texts)

    def _complete(
        self, item: ItemFeatures, encoded: PieceArrays | None
    ) -> ItemFeatures | ParsebankError:
        try:
            if encoded is not None:
                pieces = align_pieces(item.parse, *encoded, self._policy)
                item = replace(item, pieces=pieces)
            return self._with_matrices(item) if self._matrices else item
        except ParsebankError as error:
            return error

    def _with_matrices(self, item: ItemFeatures) -> ItemFeatures:
        pieces = item.pieces
        size = item.parse.word_count if pieces is None else len(pieces.parents)
        self._budget.claim(size, self._matrices)
        if pieces is None:
            return replace(item, matrices=tree_matrices(item.parse.parents(), self._matrices))
        shown = shown_matrices(pieces.parents, pieces.source, self._matrices)
        return replace(item, matrices=shown)


def with_tokens(
    item: ItemFeatures, tokens: Sequence[str] | None, labels: Sequence[str] | None
) -> ItemFeatures:
    """Add the words of each token of the request, and the labels of these words.

    Args:
        item: A parse of the tokens.
        tokens: The tokens; ``None`` for a text.
        labels: One per token, or ``None``.
    """
    if tokens is None:
        return item
    words = token_words(tokens, item.parse)
    projected = None if labels is None else project_labels(labels, words, item.parse.word_count)
    return replace(item, token_words=words, word_labels=projected)


def align_pieces(
    parse: Parse, input_ids: NDArray[np.int32], offsets: NDArray[np.int32], policy: str
) -> Pieces:
    """Align pieces to words, and build their forest under a subword policy.

    Args:
        parse: The parsed text.
        input_ids: Pieces of the same text. *Shape:* (L,).
        offsets: Their character spans. *Shape:* (L, 2).
        policy: Name in `syntax.subwords.POLICIES`.

    Raises:
        TreeError: A sentence of the parse is not a tree.
    """
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


def tree_matrices(
    parents: NDArray[np.int32], names: Sequence[MatrixName]
) -> dict[str, NDArray[Any]]:
    """Matrices of a forest; pairs without a path have the dtype's maximum as distance."""
    return {name: _MATRICES[name](parents) for name in names}


def shown_matrices(
    parents: NDArray[np.int32], source: NDArray[np.int32], names: Sequence[MatrixName]
) -> dict[str, NDArray[Any]]:
    """Matrices in which each piece has the row and column of its source."""
    own = tree_matrices(parents, names)
    return {name: _reindex(matrix, source) for name, matrix in own.items()}


def _reindex(matrix: NDArray[Any], source: NDArray[np.int32]) -> NDArray[Any]:
    """Give each piece the row (and column) of its source."""
    return matrix[np.ix_(*(source,) * matrix.ndim)]
