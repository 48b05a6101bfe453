"""Hugging Face's tokenizer classes on a folder's files, without transformers.

``BertTokenizer``, ``RobertaTokenizer`` and ``XLMRobertaTokenizer`` take vocabulary, merges and
added tokens from the file, and make the rest themselves. Importing transformers takes seconds, and
700 MB where torch is installed. A test holds the two equal, fingerprints included. A folder that is
unusual in any way is left to transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tokenizers import (
    BertWordPieceTokenizer,
    decoders,
    normalizers,
    pre_tokenizers,
    processors,
)

from syntax.strict_json import parse_json

SPECIAL_NAMES: Final = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}

_SENTENCEPIECE_NAMES: Final = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "cls_token": "<s>",
    "mask_token": "<mask>",
}

_OVERRIDES: Final = ("tokenizer.json", "added_tokens.json", "special_tokens_map.json")


def read_tokenizer_file(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a JSON object")
    return content


def is_plain_bert(folder: Path, config: Mapping[str, Any]) -> bool:
    """True if vocabulary and configuration alone make the tokenizer, with BERT's own tokens."""
    customised = any(name.endswith(("_token", "_tokens")) for name in config)
    is_named = config.get("tokenizer_class") in ("BertTokenizer", "BertTokenizerFast")
    is_overridden = any((folder / name).exists() for name in _OVERRIDES)
    return is_named and (folder / "vocab.txt").is_file() and not customised and not is_overridden


def read_bert(folder: Path, config: Mapping[str, Any]) -> Any:
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
    ids = [(token, backend.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    if None in (number for _, number in ids):
        raise ValueError("the vocabulary has no [CLS] or no [SEP]")
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=ids,
    )


def _bert(backend: Any, config: Mapping[str, Any]) -> bool:
    model = backend.model
    shape = (model.unk_token, model.continuing_subword_prefix, model.max_input_chars_per_word)
    if shape != ("[UNK]", "##", 100):
        return False
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=config.get("tokenize_chinese_chars", True),
        strip_accents=config.get("strip_accents"),
        lowercase=config.get("do_lower_case", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    frame_as_bert(backend)
    return True


def _roberta(backend: Any, config: Mapping[str, Any]) -> bool:
    space, trim = config.get("add_prefix_space", False), config.get("trim_offsets", True)
    model = backend.model
    model.dropout = model.unk_token = None
    model.continuing_subword_prefix = model.end_of_word_suffix = ""
    model.fuse_unk = model.byte_fallback = model.ignore_merges = False
    backend.normalizer = None
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    backend.decoder = decoders.ByteLevel()
    end, begin = (("</s>", backend.token_to_id("</s>")), ("<s>", backend.token_to_id("<s>")))
    backend.post_processor = processors.RobertaProcessing(
        end, begin, trim_offsets=trim, add_prefix_space=space
    )
    return True


def _xlm_roberta(backend: Any, config: Mapping[str, Any]) -> bool:
    if backend.token_to_id("<unk>") != 3 or backend.token_to_id("<0x00>") is not None:
        return False  # the class knows no other place of it, and no bytes
    scheme = "always" if config.get("add_prefix_space", True) else "never"
    backend.normalizer = _charsmap(backend.normalizer)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme=scheme)]
    )
    backend.decoder = decoders.Metaspace(prepend_scheme=scheme)
    ends = [(token, backend.token_to_id(token)) for token in ("<s>", "</s>")]
    backend.post_processor = processors.TemplateProcessing(
        single=["<s>", "$A", "</s>"],
        pair=["<s>", "$A", "</s>", "</s>", "$B", "</s>"],
        special_tokens=ends,
    )
    return True


def _charsmap(normalizer: Any) -> Any:
    steps: Any = normalizer if isinstance(normalizer, normalizers.Sequence) else [normalizer]
    return next((step for step in steps if isinstance(step, normalizers.Precompiled)), None)


@dataclass(frozen=True, slots=True)
class _Class:
    names: Mapping[str, str]
    model: str
    make: Callable[[Any, Mapping[str, Any]], bool]


_BERT: Final = _Class(SPECIAL_NAMES, "WordPiece", _bert)
_ROBERTA: Final = _Class(_SENTENCEPIECE_NAMES, "BPE", _roberta)
_XLM_ROBERTA: Final = _Class(_SENTENCEPIECE_NAMES, "Unigram", _xlm_roberta)

_CLASSES: Final = {
    "BertTokenizer": _BERT,
    "RobertaTokenizer": _ROBERTA,
    "XLMRobertaTokenizer": _XLM_ROBERTA,
}
_OF_MODELS: Final = {
    "bert": "BertTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
}
"""Class by the ``model_type`` of config.json, where tokenizer_config.json names none."""


def make_class(backend: Any, folder: Path, config: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Change a tokenizer, as it was read, into that of its class.

    Returns the names of its special tokens by role; ``None`` where that is left to transformers.
    """
    model_type = read_tokenizer_file(folder / "config.json").get("model_type")
    name = config.get("tokenizer_class") or _OF_MODELS.get(str(model_type), "")
    kind = _CLASSES.get(name.removesuffix("Fast"))
    if kind is None or model_type not in (None, *_OF_MODELS) or config.get("auto_map"):
        return None
    configs = (config, read_tokenizer_file(folder / "special_tokens_map.json"))
    usual = all(_has_usual_tokens(backend, kind.names, told) for told in configs)
    if not usual or type(backend.model).__name__ != kind.model:
        return None
    if (folder / "added_tokens.json").exists() or config.get("split_special_tokens"):
        return None
    return kind.names if kind.make(backend, config) else None


def _has_usual_tokens(backend: Any, names: Mapping[str, str], config: Mapping[str, Any]) -> bool:
    given = {role: _content(value) for role, value in config.items() if role.endswith("_token")}
    listed = config.get("added_tokens_decoder") or {}
    told = {int(at): _flags(token) for at, token in listed.items()}
    held = {at: _flags(token) for at, token in backend.get_added_tokens_decoder().items()}
    extra = config.get("additional_special_tokens") or config.get("extra_special_tokens") or []
    added = {content for content, *_ in held.values()}
    return (
        all(names.get(role) == content for role, content in given.items())
        and {*names.values(), *map(_content, extra)} <= added
        and told in ({}, held)
    )


def _content(token: Any) -> Any:
    return token.get("content") if isinstance(token, Mapping) else token


def _flags(token: Any) -> tuple[Any, ...]:
    names = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
    if isinstance(token, Mapping):
        return tuple(token.get(name) for name in names)
    return tuple(getattr(token, name) for name in names)
