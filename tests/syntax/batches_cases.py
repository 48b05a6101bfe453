"""Small examples, and batches of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.batches import (
    AssemblySpec,
    FlatExamples,
    SegmentFeatures,
    SpecialTokens,
    assemble_batch,
)

BERT = SpecialTokens(
    prefix=(101,), separator=(102,), suffix=(102,), pad_id=0, vocab_size=30522, mask_id=103
)
XLMR = SpecialTokens(
    prefix=(0,),
    separator=(2, 2),
    suffix=(2,),
    pad_id=1,
    vocab_size=250002,
    segment_type_ids=(0, 0),
    unk_id=3,
)


def segment(heads: list[int], words: list[int] | None = None, first: int = 0) -> SegmentFeatures:
    size = len(heads)
    return SegmentFeatures(
        input_ids=np.arange(first, first + size, dtype=np.int32),
        head=np.array(heads, np.int32),
        word_ids=np.array(range(size) if words is None else words, np.int32),
        upos=np.full(size, 7, np.uint8),
        deprel=np.full(size, 8, np.uint8),
        sentence_ids=np.zeros(size, np.int32),
        offsets=np.zeros((size, 2), np.int32),
    )


def assemble(
    *examples: list[SegmentFeatures], special: SpecialTokens = BERT, **options: Any
) -> dict[str, NDArray[Any]]:
    flat = FlatExamples.from_segments(examples)
    return assemble_batch(flat, special, AssemblySpec(**options))


# A: "dogs bark loudly", bark the root.  B: "it purrs".
DOGS = segment([1, -1, 1], first=10)
CAT = segment([1, -1], first=20)
