"""Alignment of wordpieces and dataset tokens with words, and features from it."""

from syntax.alignment.align import Alignment, align_pieces, attach_heads
from syntax.alignment.features import batch_features, segment_features
from syntax.alignment.tokens import project_labels, token_words, word_tokens
from syntax.spans import word_spans

__all__ = [
    "Alignment",
    "align_pieces",
    "attach_heads",
    "batch_features",
    "project_labels",
    "segment_features",
    "token_words",
    "word_spans",
    "word_tokens",
]
