"""Tokenizers: one identity however they are stored, and honest failures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from service.tokenizers import LoadedTokenizer, bundled_tokenizers, load_tokenizer
from syntax.batches import SpecialTokens
from syntax.errors import UnknownTokenizerError
from syntax.fingerprint import fingerprint
from syntax.tokenizers import tokenizer_content

DEFAULT = "parsebank-wordpiece-en"
TEXTS = (
    "Time flies like an arrow.",
    "  don't  İstanbul ﬁ ½ … naïve\tcafé",
    "中文 日本語 한국어 ไทย שלום",
    "👩‍👩‍👧‍👦 🇩🇪 \u200b zero",
)


@pytest.fixture(scope="module")
def default() -> LoadedTokenizer:
    return load_tokenizer(DEFAULT)


def test_the_bundled_tokenizer_is_framed_like_bert(default: LoadedTokenizer) -> None:
    special = default.special_tokens
    assert (len(special.prefix), len(special.separator), len(special.suffix)) == (1, 1, 1)
    assert special.separator == special.suffix
    assert special.segment_type_ids == (0, 1)
    assert special.unk_id is not None
    assert special.mask_id is not None
    assert SpecialTokens.from_json(special.to_json()) == special


@hypothesis_settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_a_batch_is_its_texts_one_by_one(default: LoadedTokenizer, texts: list[str]) -> None:
    batch = default.encode_batch(texts)
    assert [ids.tolist() for ids, _ in batch] == [default.encode(t)[0].tolist() for t in texts]


def test_identity_is_content_and_not_name(default: LoadedTokenizer, tmp_path: Path) -> None:
    copy = tmp_path / "another-name"
    shutil.copytree(bundled_tokenizers()[DEFAULT], copy)
    path = copy / "tokenizer.json"
    content = json.loads(path.read_text())
    content["truncation"] = {
        "direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0,
    }  # fmt: skip
    path.write_text(json.dumps(content))
    same = load_tokenizer(str(copy))
    assert same.fingerprint == default.fingerprint
    assert len(same.encode("word " * 100)[0]) >= 100
    content["normalizer"] = None
    path.write_text(json.dumps(content))
    assert load_tokenizer(str(copy)).fingerprint != default.fingerprint


def test_a_tokenizer_that_truncates_and_pads_is_the_same(default: LoadedTokenizer) -> None:
    path = bundled_tokenizers()[DEFAULT] / "tokenizer.json"
    backend = Tokenizer.from_file(str(path))
    backend.enable_truncation(8)
    backend.enable_padding(length=8)
    content = tokenizer_content(backend, default.special_tokens)
    assert fingerprint(content) == default.fingerprint
    assert len(backend.encode("word " * 100).ids) == len(backend.encode("word").ids) == 8


def test_the_same_tokenizer_through_transformers_has_the_same_identity(
    default: LoadedTokenizer, tmp_path: Path
) -> None:
    copy = tmp_path / "saved"
    shutil.copytree(bundled_tokenizers()[DEFAULT], copy)
    config = json.loads((copy / "tokenizer_config.json").read_text())
    del config["tokenizer_class"]
    (copy / "tokenizer_config.json").write_text(json.dumps(config))
    loaded = load_tokenizer(str(copy))
    assert loaded.fingerprint == default.fingerprint


SLOW_TO_READ = "xlm-roberta-base_from_multilingual-e5-small"
REAL = {
    "bert-base-uncased": ((101,), (102,), (102,), 0, (0, 1)),
    "bert-base-multilingual-cased": ((101,), (102,), (102,), 0, (0, 1)),
    SLOW_TO_READ: ((0,), (2, 2), (2,), 1, (0, 0)),
}


@pytest.mark.parametrize("name", [name for name in REAL if name.startswith("bert")])
def test_a_bert_vocabulary_is_the_tokenizer_that_transformers_makes_of_it(
    data_dir: Path, tmp_path: Path, name: str
) -> None:
    from transformers import AutoTokenizer

    ours = load_tokenizer(str(data_dir / "tokenizers" / name))
    AutoTokenizer.from_pretrained(data_dir / "tokenizers" / name).save_pretrained(tmp_path)
    assert load_tokenizer(str(tmp_path)).fingerprint == ours.fingerprint


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == SLOW_TO_READ else ()) for name in REAL],
)
def test_real_tokenizers_agree_with_transformers(data_dir: Path, name: str) -> None:
    from transformers import AutoTokenizer

    folder = str(data_dir / "tokenizers" / name)
    ours, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    special = ours.special_tokens
    framing = (special.prefix, special.separator, special.suffix, special.pad_id)
    assert (*framing, special.segment_type_ids) == REAL[name]
    assert special.vocab_size == len(theirs)
    first, second = (ours.encode(text)[0].tolist() for text in TEXTS[:2])
    pair = [*special.prefix, *first, *special.separator, *second, *special.suffix]
    assert theirs(TEXTS[0], TEXTS[1])["input_ids"] == pair
    for text in TEXTS:
        expected = theirs(text, add_special_tokens=False, return_offsets_mapping=True)
        ids, offsets = ours.encode(text)
        assert ids.tolist() == expected["input_ids"]
        assert [tuple(span) for span in offsets.tolist()] == expected["offset_mapping"]


def named(folder: Path, **config: str) -> Path:
    """A folder with its tokenizer.json, and what says of which class it is."""
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(config))
    return folder


def byte_level_bpe(folder: Path) -> Path:
    """A byte-level BPE with RoBERTa's special tokens, as an older release would have written it."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def unigram(folder: Path) -> Path:
    """A unigram model with XLM-R's special tokens, and steps that its class does not have."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Replace("  ", " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 5, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def word_piece(folder: Path) -> Path:
    """The bundled WordPiece with another normalizer in its file."""
    content = json.loads((bundled_tokenizers()[DEFAULT] / "tokenizer.json").read_text())
    content["normalizer"] = None
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return folder


CLASSES: dict[str, tuple[Callable[[Path], Path], dict[str, str]]] = {
    "roberta": (byte_level_bpe, {"tokenizer_class": "RobertaTokenizer"}),
    "roberta, fast": (byte_level_bpe, {"tokenizer_class": "RobertaTokenizerFast"}),
    "xlm-roberta": (unigram, {"tokenizer_class": "XLMRobertaTokenizer", "sep_token": "</s>"}),
    "bert": (word_piece, {"tokenizer_class": "BertTokenizer"}),
    "another mask": (word_piece, {"tokenizer_class": "BertTokenizer", "mask_token": "[BLANK]"}),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_makes_of_a_file_what_it_makes_in_transformers(tmp_path: Path, name: str) -> None:
    from transformers import AutoTokenizer

    make, config = CLASSES[name]
    folder = named(make(tmp_path), **config)
    ours, theirs = load_tokenizer(str(folder)), AutoTokenizer.from_pretrained(folder)
    theirs.save_pretrained(tmp_path / "saved")
    plain = named(tmp_path / "saved", tokenizer_class="PreTrainedTokenizerFast")
    assert ours.content["tokenizer"] == load_tokenizer(str(plain)).content["tokenizer"]
    assert ours.special_tokens.pad_id == theirs.pad_token_id
    assert ours.special_tokens.mask_id == theirs.mask_token_id
    assert ours.special_tokens.unk_id == theirs.unk_token_id
    for text in TEXTS:
        assert ours.encode(text)[0].tolist() == theirs(text, add_special_tokens=False)["input_ids"]


LIGHTLY = """
import sys
from service.tokenizers import load_tokenizer
print(load_tokenizer(sys.argv[1]).fingerprint)
assert not {"transformers", "torch"} & sys.modules.keys(), "imported"
"""

FINGERPRINTS = {
    "bert-base-uncased": "f8618458e3174c075dcab8725533d4cd",
    "bert-base-multilingual-cased": "e524ba2a04658b1ed64b2f0a3546ef2e",
    SLOW_TO_READ: "522d741dfbe14b9340fe20611290acd3",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FINGERPRINTS)
def test_real_tokenizers_are_read_without_transformers_and_keep_their_identity(
    data_dir: Path, name: str
) -> None:
    folder = data_dir / "tokenizers" / name
    command = [sys.executable, "-c", LIGHTLY, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == FINGERPRINTS[name]


def test_a_cached_name_of_the_hub_is_read_from_the_cache_alone(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--somebody--roberta" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    named(byte_level_bpe(snapshot))
    (snapshot / "config.json").write_text(json.dumps({"model_type": "roberta"}))
    command = [sys.executable, "-c", LIGHTLY, "somebody/roberta"]
    offline = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=offline)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == load_tokenizer(str(snapshot)).fingerprint


@pytest.mark.parametrize(
    "name", ["", "no-such-tokenizer", "/no/such/folder", "a b c", "x\0y", "\ud800", "~nobody/x"]
)
def test_unknown_names_fail_fast_and_say_what_to_do(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UnknownTokenizerError, match="Give a folder") as caught:
        load_tokenizer(name)
    assert caught.value.detail["known"] == [DEFAULT]


def test_without_a_network_a_hub_name_fails_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UnknownTokenizerError, match="not cached"):
        load_tokenizer("somebody/nothing-like-it", hub_timeout_seconds=1)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": "1.0"}'])
def test_a_broken_tokenizer_file_is_a_named_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend"}')
    with pytest.raises(UnknownTokenizerError, match="cannot be read"):
        load_tokenizer(str(tmp_path))


def test_a_folder_without_a_tokenizer_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownTokenizerError):
        load_tokenizer(str(tmp_path))
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(UnknownTokenizerError, match="not JSON"):
        load_tokenizer(str(tmp_path))
