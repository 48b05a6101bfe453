"""BERT's own tokenizer folders: a ``vocab.txt``, without a serialised tokenizer.

Hugging Face's classes read them too, but importing transformers takes seconds (it imports torch
where that is installed) in every process that needs a tokenizer; building the same tokenizer takes
a fraction of one. A test holds the two equal, fingerprint included.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tokenizers import BertWordPieceTokenizer
from tokenizers.processors import TemplateProcessing

SPECIAL_NAMES: Final = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
"""BERT's special tokens by role."""

_CLASSES: Final = ("BertTokenizer", "BertTokenizerFast")
_OVERRIDES: Final = ("tokenizer.json", "added_tokens.json", "special_tokens_map.json")


def is_plain_bert(folder: Path, config: Mapping[str, Any]) -> bool:
    """True if vocabulary and configuration alone make the tokenizer, with BERT's own tokens."""
    customised = any(name.endswith(("_token", "_tokens")) for name in config)
    named = config.get("tokenizer_class") in _CLASSES and (folder / "vocab.txt").is_file()
    return named and not customised and not any((folder / name).exists() for name in _OVERRIDES)


def read_bert(folder: Path, config: Mapping[str, Any]) -> Any:
    """The Rust tokenizer of a folder for which `is_plain_bert` holds."""
    tokenizer = BertWordPieceTokenizer(
        vocab=str(folder / "vocab.txt"),
        lowercase=config.get("do_lower_case", True),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=config.get("tokenize_chinese_chars", True),
    )
    backend = tokenizer._tokenizer
    frame_as_bert(backend)
    return backend


def frame_as_bert(backend: Any) -> None:
    """Have [CLS] and [SEP] put around texts."""
    ids = [(token, backend.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    if None in (number for _, number in ids):
        raise ValueError("the vocabulary has no [CLS] or no [SEP]")
    backend.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=ids,
    )
