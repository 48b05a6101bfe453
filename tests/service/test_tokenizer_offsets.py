"""Tokenizers whose offsets cannot be aligned are refused by name, and no good one is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from service.tokenizers import load_tokenizer
from syntax.alignment import align_pieces
from syntax.errors import TokenizerOffsetsError, UnknownTokenizerError
from syntax.trees.conllu import parse_conllu, parse_from_sentences

TEXTS = [
    "The 13 quick brown foxes don't jump over two lazy dogs, do they?",
    "Zoë's naïve café: déjà vu, Łódź. Мама мыла раму. שלום עולם! 我喜欢猫。ภาษาไทย 👩‍👧",
]
LLAMA = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)|\s+"


def byte_level(
    pre: Any, post: Any = None, *, ignore_merges: bool = False, normalizer: Any = None
) -> Tokenizer:
    """A byte-level BPE, as GPT-2's and Llama 3's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    tokenizer.model.ignore_merges = ignore_merges
    if post is not None:
        tokenizer.post_processor = post
    return tokenizer


def llama(*, space: bool = False, trim: bool = False, ignore_merges: bool = True) -> Tokenizer:
    """Cut by a pattern first, then into bytes."""
    cut = pre_tokenizers.Split(Regex(LLAMA), "isolated")
    into_bytes = pre_tokenizers.ByteLevel(add_prefix_space=space, use_regex=False)
    return byte_level(
        pre_tokenizers.Sequence([cut, into_bytes]),
        processors.ByteLevel(trim_offsets=trim),
        ignore_merges=ignore_merges,
    )


def gpt2(*, space: bool = False, trim: bool = False) -> Tokenizer:
    return byte_level(
        pre_tokenizers.ByteLevel(add_prefix_space=space), processors.ByteLevel(trim_offsets=trim)
    )


def sentencepiece(kind: str) -> Tokenizer:
    """Unigram or BPE over Metaspace, the first with NFKC and a piece for what is unknown."""
    special = ["<unk>", "<s>", "</s>"]
    options: dict[str, Any] = {"vocab_size": 300, "special_tokens": special, "show_progress": False}
    if kind == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        trainer: Any = trainers.UnigramTrainer(unk_token="<unk>", **options)
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        trainer = trainers.BpeTrainer(**options)
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    return tokenizer


def letters_only() -> Tokenizer:
    """A BPE that drops all but a few letters, and counts on as if the others were not there."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=40, show_progress=False)
    tokenizer.train_from_iterator(["the fox jumps"] * 20, trainer)
    return tokenizer


def saved(tokenizer: Tokenizer, folder: Path) -> str:
    tokenizer.save(str(folder / "tokenizer.json"))
    config = json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"})
    (folder / "tokenizer_config.json").write_text(config)
    return str(folder)


GOOD: dict[str, Callable[[], Tokenizer]] = {
    "llama-3": llama,
    "llama-3, with merges": lambda: llama(ignore_merges=False),
    "llama-3, trimmed": lambda: llama(trim=True),
    "llama-3, spaces added and left": lambda: llama(space=True),
    "gpt-2": gpt2,
    "roberta": lambda: gpt2(trim=True),
    "roberta, space added": lambda: gpt2(space=True, trim=True),
    "bytes by the normalizer": lambda: byte_level(
        pre_tokenizers.Split(Regex("Ġ"), "merged_with_next"), normalizer=normalizers.ByteLevel()
    ),
    "accents split off": lambda: byte_level(
        pre_tokenizers.ByteLevel(add_prefix_space=False), normalizer=normalizers.NFKD()
    ),
    "unigram": lambda: sentencepiece("unigram"),
    "bpe with byte fallback": lambda: sentencepiece("bpe"),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_offsets_are_accepted(tmp_path: Path, name: str) -> None:
    loaded = load_tokenizer(saved(GOOD[name](), tmp_path))
    text = "The foxes don't"
    words = ["The", "foxes", "do", "n't"]
    lines = [f"{n}\t{word}\t_\tX\t_\t_\t{n - 1}\tdep\t_\t_" for n, word in enumerate(words, 1)]
    lines[2] = lines[2].removesuffix("_") + "SpaceAfter=No"
    parse = parse_from_sentences(list(parse_conllu("\n".join(lines) + "\n\n")))
    assert parse.text == text
    alignment = align_pieces(text, loaded.encode(text)[1], parse)
    assert not alignment.pieceless[:2].any()


BROKEN: dict[str, Callable[[], Tokenizer]] = {
    "llama-3, spaces added and trimmed": lambda: llama(space=True, trim=True),
    "with merges": lambda: llama(space=True, trim=True, ignore_merges=False),
    "unknown letters dropped": letters_only,
}


@pytest.mark.parametrize("name", BROKEN)
def test_offsets_that_miss_characters_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(TokenizerOffsetsError, match="no piece covers the character") as caught:
        load_tokenizer(saved(BROKEN[name](), tmp_path))
    assert isinstance(caught.value, UnknownTokenizerError)
    assert caught.value.error_type == "tokenizer_offsets"
    assert str(tmp_path) in caught.value.message
    assert "add_prefix_space" in caught.value.message
