"""From stored segments to padded batches of model input."""

from syntax.batches.answers import (
    CUT,
    INSIDE,
    NO_PIECES,
    NOWHERE,
    OUTSIDE,
    Located,
    characters_of,
    locate,
    pieces_of,
    spans_of_text,
)
from syntax.batches.batch import BatchBuffers, assemble_batch
from syntax.batches.labels import (
    IGNORE,
    LocatedSpans,
    label_pieces,
    label_tokens,
    labels_of_tokens,
    locate_spans,
)
from syntax.batches.segments import FlatExamples, SegmentFeatures, Span, mark_spans
from syntax.batches.spec import (
    MAX_LENGTH,
    AssemblySpec,
    Level,
    SeparatorEdge,
    SequenceSpec,
    Truncation,
    TruncationSide,
    TruncationTie,
)
from syntax.batches.template import Template
from syntax.batches.tokens import token_ids_of
from syntax.tokenizers import SpecialTokens

__all__ = [
    "CUT",
    "IGNORE",
    "INSIDE",
    "MAX_LENGTH",
    "NOWHERE",
    "NO_PIECES",
    "OUTSIDE",
    "AssemblySpec",
    "BatchBuffers",
    "FlatExamples",
    "Level",
    "Located",
    "LocatedSpans",
    "SegmentFeatures",
    "SeparatorEdge",
    "SequenceSpec",
    "Span",
    "SpecialTokens",
    "Template",
    "Truncation",
    "TruncationSide",
    "TruncationTie",
    "assemble_batch",
    "characters_of",
    "label_pieces",
    "label_tokens",
    "labels_of_tokens",
    "locate",
    "locate_spans",
    "mark_spans",
    "pieces_of",
    "spans_of_text",
    "token_ids_of",
]
