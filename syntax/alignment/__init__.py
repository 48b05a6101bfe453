"""Which wordpieces show which words, and the dependency tree that follows over the pieces."""

from syntax.alignment.align import Alignment, align_pieces, attach_heads
from syntax.alignment.features import segment_features
from syntax.spans import word_spans

__all__ = ["Alignment", "align_pieces", "attach_heads", "segment_features", "word_spans"]
