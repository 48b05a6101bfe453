"""The special tokens of a tokenizer around segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """The tokens that frame one, two or more segments.

    A sequence is ``prefix A suffix``, ``prefix A separator B suffix``, ``prefix A separator B
    separator C suffix`` and so on. BERT: ``[CLS]``, ``[SEP]``, ``[SEP]``; RoBERTa and XLM-R:
    ``<s>``, ``</s> </s>``, ``</s>``.

    Attributes:
        segment_type_ids: ``token_type_ids`` of the first segment and of all later ones, each with
            the special tokens that follow it.
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
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> SpecialTokens:
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in content.items()
        }
        return cls(**values)

    def count(self, segments: int) -> int:
        return len(self.prefix) + max(segments - 1, 0) * len(self.separator) + len(self.suffix)
