"""Training of tokenizers, and what our own reading and Hugging Face's make of them."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest
from transformers import AutoTokenizer, BertConfig

from clients.wordpiece import (
    SPECIAL_TOKENS,
    WordPieceOptions,
    published_size,
    save_tokenizer,
    train_wordpiece,
)
from service.tokenizers import load_tokenizer
from syntax.alignment import align_pieces, attach_heads
from syntax.errors import InputError, SpecError
from syntax.trees.conllu import parse_conllu, parse_from_sentences

WOLOF = [
    "Làkk yi ëpp nañu ci àdduna bi .",
    "Ñaari ŋaam yu réy ak benn pënd",
    "Xam-xamu ñi : ŋaay , ëtt , àll",
    "làkk yi , ŋaam yi ak àll bi",
] * 3


@pytest.fixture
def folder(tmp_path):
    trained = train_wordpiece(lambda: WOLOF, WordPieceOptions(vocab_size=90))
    save_tokenizer(trained, tmp_path / "wolof", {"reader": "none"})
    return tmp_path / "wolof"


@pytest.mark.parametrize(
    ("types", "size"),
    [
        (59_190, 8_589),
        (59_137, 8_588),
        (478_376, 14_178),
        (14_457, 8_000),
        (15_074, 8_000),
        (0, 8000),
    ],
)
def test_the_published_rule_of_the_size(types, size):
    assert published_size(types) == size


def test_special_tokens_have_the_published_ids():
    tokenizer = train_wordpiece(lambda: WOLOF).tokenizer
    assert [tokenizer.id_to_token(n) for n in range(5)] == list(SPECIAL_TOKENS)
    assert SPECIAL_TOKENS == ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")


@pytest.mark.parametrize(
    ("options", "same"),
    [
        (WordPieceOptions(90), {"Làkk", "làkk"}),
        (WordPieceOptions(90, strip_accents=True), {"Làkk", "làkk", "lakk"}),
        (WordPieceOptions(120, lowercase=False), {"làkk"}),
    ],
)
def test_case_and_accents_are_options(options, same):
    tokenizer = train_wordpiece(lambda: [*WOLOF, "lakk"], options).tokenizer
    pieces = tokenizer.encode("làkk").tokens
    assert {w for w in ("Làkk", "làkk", "lakk") if tokenizer.encode(w).tokens == pieces} == same


def test_a_word_without_a_piece_is_one_unknown_token(folder):
    loaded = load_tokenizer(str(folder))
    ids, offsets = loaded.encode("làkk Жж漢 yi")
    assert list(ids).count(SPECIAL_TOKENS.index("[UNK]")) == 1
    (at,) = [n for n, piece in enumerate(ids) if piece == SPECIAL_TOKENS.index("[UNK]")]
    assert offsets[at].tolist() == [5, 8]


def test_words_alone_have_the_pieces_of_the_text(folder):
    loaded = load_tokenizer(str(folder))
    for text in WOLOF:
        whole, _ = loaded.encode(text)
        alone = [piece for ids, _ in loaded.encode_batch(text.split()) for piece in ids]
        assert whole.tolist() == alone


def test_pieces_hang_in_the_tree_as_published(folder):
    """First pieces have the first piece of their word's head; later ones their own first piece."""
    words = ["Xam-xamu", "ñi", "réy", "Ж"]
    heads = [3, 1, 0, 3]
    lines = "".join(
        f"{n}\t{word}\t_\t_\t_\t_\t{head}\tdep\t_\t_\n"
        for n, (word, head) in enumerate(zip(words, heads, strict=True), 1)
    )
    parse = parse_from_sentences(list(parse_conllu(lines + "\n")))
    loaded = load_tokenizer(str(folder))
    _, offsets = loaded.encode(parse.text)
    alignment = align_pieces(parse.text, offsets, parse)
    owner = alignment.word_ids.tolist()
    assert sorted(set(owner)) == [0, 1, 2, 3]
    first = [owner.index(word) for word in range(4)]
    expected = [
        first[word] if at != first[word] else (first[heads[word] - 1] if heads[word] else -1)
        for at, word in enumerate(owner)
    ]
    assert attach_heads(parse, alignment).tolist() == expected


def test_our_reading_is_that_of_hugging_face(folder):
    loaded, theirs = load_tokenizer(str(folder)), AutoTokenizer.from_pretrained(folder)
    assert loaded.special_tokens.prefix == (1,)
    assert loaded.special_tokens.suffix == (2,)
    assert (loaded.special_tokens.pad_id, loaded.special_tokens.mask_id) == (0, 4)
    for text in [*WOLOF, "[MASK] Жж"]:
        assert theirs(text)["input_ids"] == [1, *loaded.encode(text)[0].tolist(), 2]
    assert theirs("làkk", "yi")["token_type_ids"][-1] == 1
    assert theirs.model_max_length == 512
    assert theirs.mask_token == "[MASK]"


def test_the_class_stays_beside_the_configuration_of_an_encoder(folder):
    """`BertTokenizer`, which `model_type` would suggest, strips accents."""
    before = load_tokenizer(str(folder))
    BertConfig(vocab_size=90).save_pretrained(folder)
    text = WOLOF[0]
    assert load_tokenizer(str(folder)).fingerprint == before.fingerprint
    assert AutoTokenizer.from_pretrained(folder)(text)["input_ids"][1:-1] == (
        before.encode(text)[0].tolist()
    )


def test_the_record_says_what_it_was_made_of(folder):
    record = json.loads((folder / "training.json").read_text("utf-8"))
    assert record["fingerprint"] == load_tokenizer(str(folder)).fingerprint
    assert record["pieces"] == 90
    assert record["options"] == {"vocab_size": 90, "lowercase": True, "strip_accents": False}
    corpus = record["corpus"]
    assert (corpus["reader"], corpus["texts"], corpus["tokens"]) == ("none", 12, 93)
    assert corpus["types"] == len({word for text in WOLOF for word in text.split()})


def test_the_order_of_texts_and_the_process_do_not_matter(tmp_path):
    texts = [" ".join(random.Random(n).choices(WOLOF, k=3)) for n in range(50)]
    trained = train_wordpiece(lambda: texts, WordPieceOptions(80))
    shuffled = train_wordpiece(lambda: texts[::-1], WordPieceOptions(80))
    assert trained.tokenizer.to_str() == shuffled.tokenizer.to_str()
    assert trained.corpus == shuffled.corpus
    code = (
        "import json, sys; from clients.wordpiece import *; texts = json.load(sys.stdin);"
        "print(train_wordpiece(lambda: texts, WordPieceOptions(80)).fingerprint)"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(texts), text=True, capture_output=True
    )
    assert other.stdout.strip() == trained.fingerprint, other.stderr


def test_impossible_trainings_are_refused(tmp_path, folder):
    with pytest.raises(SpecError, match="`vocab_size` is 5"):
        WordPieceOptions(vocab_size=5)
    with pytest.raises(InputError, match="have no words"):
        train_wordpiece(lambda: ["  "])
    with pytest.raises(SpecError, match="exists already"):
        save_tokenizer(train_wordpiece(lambda: WOLOF), folder, {})
