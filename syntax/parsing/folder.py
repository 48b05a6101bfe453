"""The folder of a parser of running text, which the trainer writes and the service reads.

A parser of given words (`service.parsers.words`) has files of the same names and other content.
"""

from __future__ import annotations

from typing import Final

FORMAT: Final = 1

CARD: Final = "model.json"
TOKENIZER: Final = "tokenizer.json"

PIECES: Final = "pieces.onnx"
"""From ids, surfaces, int32 (B, L), and a bool mask (B, L), to states (B, L, D), scores of
boundaries (B, L, 3) and of scripts of tokens (B, L, C), float32."""

WORDS: Final = "words.onnx"
"""From means of states (W, D) and places in tokens, int32 (W,), to the class of each column, int64
(W,), and, behind a row for ROOT, the states of arcs and relations (1 + W, ...), float32."""

RELATIONS: Final = "relations.onnx"
"""From states of dependents and of their heads (W, R) to scores of relations (W, C), float32."""

PROGRAMS: Final = (PIECES, WORDS, RELATIONS)
FILES: Final = (CARD, *PROGRAMS, TOKENIZER)

EXACT: Final = "exact"
"""Folder, beside the programs of a training, of the same ones in 32-bit numbers."""
