"""Identity and special tokens of a ``tokenizers.Tokenizer``, whose library is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from syntax.batches import SpecialTokens
from syntax.fingerprint import fingerprint
from syntax.strict_json import parse_json

_SAMPLE: Final = ("a", "b")


def tokenizer_content(backend: Any, special: SpecialTokens) -> dict[str, Any]:
    """Content whose fingerprint identifies a tokenizer; truncation and padding do not count."""
    serialised = parse_json(backend.to_str())
    serialised.update(truncation=None, padding=None)
    return {"tokenizer": fingerprint(serialised), "special_tokens": special.to_json()}


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
