"""Special tokens and identity of a ``tokenizers.Tokenizer``, whose library is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from syntax.fingerprint import fingerprint

_SAMPLE: Final = ("a", "b")


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


def tokenizer_content(backend: Any, special: SpecialTokens) -> dict[str, Any]:
    """Content whose fingerprint identifies a tokenizer; truncation and padding do not count."""
    if backend.truncation or backend.padding:
        backend = type(backend).from_str(backend.to_str())
        backend.no_truncation()
        backend.no_padding()
    # The library sorts vocabularies by id; to parse 250,000 pieces anew takes half a second.
    return {"tokenizer": fingerprint(backend.to_str()), "special_tokens": special.to_json()}


def special_tokens_of(backend: Any, names: Mapping[str, str]) -> SpecialTokens | None:
    """Layout of special tokens, found by encoding one text and a pair; ``None`` if it is another.

    The backend has no truncation and padding; ``names`` has roles such as ``pad_token``.
    """
    first, second = (backend.encode(text, add_special_tokens=False).ids for text in _SAMPLE)
    alone = backend.encode(_SAMPLE[0]).ids
    pair = backend.encode(*_SAMPLE)
    places = range(len(alone) - len(first) + 1)
    start = next((at for at in places if alone[at : at + len(first)] == first), -1)
    prefix, suffix = alone[:start], alone[start + len(first) :]
    head, tail = [*prefix, *first], [*second, *suffix]
    middle = len(pair.ids) - len(tail)
    if start < 0 or pair.ids[: len(head)] != head or pair.ids[middle:] != tail:
        return None
    return SpecialTokens(
        prefix=tuple(prefix),
        separator=tuple(pair.ids[len(head) : middle]),
        suffix=tuple(suffix),
        pad_id=_pad_id(backend, names),
        segment_type_ids=(pair.type_ids[start], pair.type_ids[middle]),
        mask_id=_id_of(backend, names, "mask_token"),
        unk_id=_id_of(backend, names, "unk_token"),
        vocab_size=backend.get_vocab_size(with_added_tokens=True),
    )


def _pad_id(backend: Any, names: Mapping[str, str]) -> int:
    """Id of the padding token; models without one (GPT-2) pad with their end-of-text."""
    roles = ("pad_token", "eos_token", "unk_token")
    ids = (_id_of(backend, names, role) for role in roles)
    return next((token_id for token_id in ids if token_id is not None), 0)


def _id_of(backend: Any, names: Mapping[str, str], role: str) -> int | None:
    token_id: int | None = backend.token_to_id(names[role]) if role in names else None
    return token_id
