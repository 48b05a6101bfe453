"""The tokenizer of what a decoder writes: texts to targets, and generated ids to texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.batches import SpecialTokens
from syntax.errors import SpecError
from syntax.fingerprint import fingerprint
from syntax.tokenizers import special_tokens_of, tokenizer_content
from trainer.denoising import IGNORED
from trainer.nn.tokenizer import fast_tokenizer


@dataclass(frozen=True, slots=True)
class TargetTokenizer:
    """A tokenizer with a token to end a text; ``backend`` is a ``tokenizers.Tokenizer``."""

    name: str
    backend: Any
    special: SpecialTokens
    fingerprint: str

    def __post_init__(self) -> None:
        if not self.special.suffix or self.special.suffix[-1] == self.special.pad_id:
            raise SpecError(
                f"the tokenizer {self.name} has no token of its own that ends a text, so "
                "generation would not stop; take one such as `parsebank tokenizers train` makes"
            )

    @property
    def end(self) -> int:
        return self.special.suffix[-1]

    @property
    def start(self) -> int:
        """The id before the first piece: what begins a text, or else what ends one."""
        return self.special.prefix[0] if self.special.prefix else self.end

    def language(self, name: str) -> int:
        """The id of the token ``<NAME>``, which says of what language a text is."""
        found: int | None = self.backend.token_to_id(f"<{name}>")
        if found is None:
            raise SpecError(
                f"the tokenizer {self.name} has no token <{name}> for texts of that language; "
                f"train it with --special '<{name}>'"
            )
        return found

    def encode(self, texts: Sequence[str | None], longest: int) -> NDArray[np.int64]:
        """The ids of texts, each with its end, `IGNORED` behind it. *Shape:* (B, T).

        None has no ids, not even an end; ids beyond ``longest`` are cut off, the end, too.
        """
        found = self._pieces(texts, longest)
        ids_BT = np.full((len(texts), max(map(len, found), default=0)), IGNORED, np.int64)
        for row, ids in zip(ids_BT, found, strict=True):
            row[: len(ids)] = ids
        return ids_BT

    def lengths(self, texts: Sequence[str | None], longest: int) -> NDArray[np.int64]:
        return np.array([len(ids) for ids in self._pieces(texts, longest)], np.int64)

    def decode(self, ids_BT: NDArray[np.integer]) -> list[str]:
        """The texts of generated ids, up to the first end; in NFC, without special tokens."""
        rows = [row[: (row == self.end).argmax() or None] for row in ids_BT]
        kept = [[] if len(row) and row[0] == self.end else row.tolist() for row in rows]
        texts = self.backend.decode_batch(kept, skip_special_tokens=True)
        return [unicodedata.normalize("NFC", text).strip() for text in texts]

    def _pieces(self, texts: Sequence[str | None], longest: int) -> list[list[int]]:
        encoded = self.backend.encode_batch([x or "" for x in texts], add_special_tokens=False)
        return [
            [] if text is None else [*one.ids, self.end][:longest]
            for text, one in zip(texts, encoded, strict=True)
        ]


@lru_cache(maxsize=8)
def target_tokenizer(name: str) -> TargetTokenizer:
    """The tokenizer in a folder, or of a name on the model hub that is cached."""
    tokenizer = fast_tokenizer(name)
    special = None
    if tokenizer is not None:
        backend = tokenizer.backend_tokenizer
        special = special_tokens_of(backend, dict(tokenizer.special_tokens_map))
    if tokenizer is None or special is None:
        raise SpecError(
            f"the target tokenizer {name!r} is no folder with a fast tokenizer and no cached name "
            "of the model hub; set task.tokenizer to one"
        )
    return TargetTokenizer(name, backend, special, fingerprint(tokenizer_content(backend, special)))
