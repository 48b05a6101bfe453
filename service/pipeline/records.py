"""Requests to the pipeline, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from service.parsers import ParseInput, ParserIdentity
from service.pipeline.inputs import FORBIDDEN
from service.tokenizers import LoadedTokenizer
from syntax import Parse
from syntax.batches import SegmentFeatures
from syntax.errors import ParsebankError, SpecError

MatrixName = Literal["distance", "depth", "ancestor"]


@dataclass(frozen=True)
class FeatureRequest:
    """Texts, and the requested features.

    Attributes:
        lang: ISO code; by default the parser's, or the settings' if there is no parser either.
        tokenizer: Name or path of a tokenizer; without one there are no pieces.
        matrices: Matrices to answer, over pieces, or over words without a tokenizer.
        packed: The matrices are answered as bytes, which allows larger ones.
        token_labels: With tokens, a label per token of each text.
        deadline_seconds: Time for the parsing, if less than the settings'.
    """

    items: tuple[ParseInput, ...]
    lang: str | None = None
    parser: str | None = None
    tokenizer: str | None = None
    policy: str = "attach"
    matrices: tuple[MatrixName, ...] = ()
    packed: bool = False
    store: bool = True
    deadline_seconds: float | None = None
    token_labels: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.token_labels is None:
            return
        if any(item.tokens is None for item in self.items):
            raise SpecError("token_labels came with texts; labels go with tokens")
        if len(self.token_labels) != len(self.items):
            raise SpecError(
                f"{len(self.token_labels)} lists of labels came with {len(self.items)} lists of "
                "tokens; give one for each"
            )
        for at, (item, labels) in enumerate(zip(self.items, self.token_labels, strict=True)):
            if len(labels) != len(item.tokens or ()):
                raise SpecError(
                    f"token_labels[{at}] has {len(labels)} labels for the "
                    f"{len(item.tokens or ())} tokens of tokens[{at}]; give one label per token",
                    position=at,
                )
            if FORBIDDEN.search("".join(labels)):
                raise SpecError(
                    f"token_labels[{at}] holds NUL or a lone surrogate, which no answer can carry; "
                    "give labels such as B-PER",
                    position=at,
                )


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one text under a subword policy, without special tokens.

    Attributes:
        input_ids: *Shape:* (L,).
        offsets: Character spans. *Shape:* (L, 2).
        word_ids: Word of each piece through the whole text, -1 for none. *Shape:* (L,).
        parents: Parent piece, -1 at roots and at pieces without a word. *Shape:* (L,).
        source: The piece whose row each piece shows in a matrix. *Shape:* (L,).
        features: Stored features of the text; independent of the policy.
    """

    input_ids: NDArray[np.int32]
    offsets: NDArray[np.int32]
    word_ids: NDArray[np.int32]
    parents: NDArray[np.int32]
    source: NDArray[np.int32]
    features: SegmentFeatures


@dataclass(frozen=True, slots=True)
class ItemFeatures:
    """One text's parse and its derived features.

    Attributes:
        token_words: Words of each token that was sent, through the whole text; if any were.
        word_labels: Label of each word, if the tokens had labels.
    """

    key: str
    cached: bool
    parse: Parse
    pieces: Pieces | None = None
    matrices: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    token_words: list[list[int]] | None = None
    word_labels: list[str | None] | None = None


@dataclass(frozen=True)
class MadeBy:
    """Name and fingerprint of a parser in the store."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class FeatureAnswer:
    """The outcome of each text, in order, its language, and its makers."""

    parser: ParserIdentity | MadeBy
    lang: str
    tokenizer: LoadedTokenizer | None
    items: list[ItemFeatures | ParsebankError]

    @property
    def is_stored(self) -> bool:
        return all(isinstance(item, ItemFeatures) and item.cached for item in self.items)
