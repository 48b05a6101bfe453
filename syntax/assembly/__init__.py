"""From stored segments to padded batches of model input."""

from syntax.assembly.batch import BatchBuffers, assemble_batch
from syntax.assembly.segments import FlatExamples, SegmentFeatures
from syntax.assembly.spec import AssemblySpec, SeparatorEdge, Truncation
from syntax.assembly.special import SpecialTokens

__all__ = [
    "AssemblySpec",
    "BatchBuffers",
    "FlatExamples",
    "SegmentFeatures",
    "SeparatorEdge",
    "SpecialTokens",
    "Truncation",
    "assemble_batch",
]
