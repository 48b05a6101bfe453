"""The special tokens of a tokenizer, and where they stand around segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """How a tokenizer frames one, two or more segments.

    A sequence is ``prefix A suffix``, ``prefix A separator B suffix``, ``prefix A separator B
    separator C suffix`` and so on. BERT: ``[CLS]``, ``[SEP]``, ``[SEP]``; RoBERTa and XLM-R:
    ``<s>``, ``</s> </s>``, ``</s>``.

    Attributes:
        prefix, separator, suffix: Token ids.
        pad_id: Id of the padding token.
        segment_type_ids: ``token_type_ids`` of the first segment and of all later ones, each with
            the special tokens that follow it.
        mask_id, unk_id: Ids of the mask and unknown tokens, where the tokenizer has them.
        vocab_size: Number of ids.
    """

    prefix: tuple[int, ...]
    separator: tuple[int, ...]
    suffix: tuple[int, ...]
    pad_id: int
    vocab_size: int
    segment_type_ids: tuple[int, int] = (0, 1)
    mask_id: int | None = None
    unk_id: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The attributes as JSON content."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> SpecialTokens:
        """Inverse of `to_json`."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in content.items()
        }
        return cls(**values)

    def count(self, segments: int) -> int:
        """Special tokens around that many segments."""
        return len(self.prefix) + max(segments - 1, 0) * len(self.separator) + len(self.suffix)
