"""The invariants of the alignment on real text, in ten scripts, under real tokenizers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer

from syntax import Parse, Sentence, Token, Word, parse_from_sentences, read_conllu
from syntax.alignment import align_pieces, attach_heads, segment_features

TREEBANKS = {
    "English": "UD_English-EWT/en_ewt-ud-dev",
    "French": "UD_French-Sequoia/fr_sequoia-ud-dev",
    "Turkish": "UD_Turkish-IMST/tr_imst-ud-dev",
    "Vietnamese": "UD_Vietnamese-VTB/vi_vtb-ud-dev",
    "Maltese": "UD_Maltese-MUDT/mt_mudt-ud-dev",
    "Cyrillic": "UD_Russian-GSD/ru_gsd-ud-dev",
    "Greek": "UD_Greek-GDT/el_gdt-ud-dev",
    "Arabic": "UD_Uyghur-UDT/ug_udt-ud-dev",
    "Hangul": "UD_Korean-GSD/ko_gsd-ud-dev",
    "Han": "UD_Chinese-GSDSimp/zh_gsdsimp-ud-dev",
    "Coptic": "UD_Coptic-Scriptorium/cop_scriptorium-ud-dev",
}

# Words stand between spaces; where the script writes none, "+" glues them to the next.
WRITTEN = {
    "Thai": "ฉัน+ รัก+ ภาษา+ ไทย และ+ อาหาร+ ไทย+ มาก+ ๆ",
    "Devanagari": "मुझे हिन्दी पढ़ना और लिखना अच्छा लगता है+ ।",
    "Hebrew": "הילדים קראו ספר ישן ב+ ספריה+ , שָׁלוֹם+ .",
    "Japanese": "私+ は+ 東京+ に+ 住ん+ で+ い+ ます+ 。 ガッコウ+ だ+ よ+ ！",
    "Arabic marks": "ذَهَبَ الوَلَدُ إلى المدرسة \u200fاليوم\u200f+ .",
    "emoji": "I 👨‍👩‍👧‍👦 love 👍🏽+ 👍🏽 it 🇫🇷+ !",
    "combining": "Cafe\u0301 nai\u0308ve ÉCOLE Z͑ͫ̓a̴l̵g̶o",
    "no-break": "10\u00a0000 km\u202f/\u202fh a\u00a0b",
    "soft hyphen": "Donau\u00addampf\u00adschiff ab\u200bcd \u200b x",
    "fractions": "½ cup … ﬁne ①② ㎏ ﷺ",
    "dotted I": "İstanbul'da İİ+ ı ẞtraße ǅ",
    "long for WordPiece": "+ ".join(["ฉัน", "รัก", "ภาษา", "ไทย", "และ", "อาหาร"] * 6),
    "controls": "x\x01y \ufffd z \u0085 \ufeff",
}


class Encoder(NamedTuple):
    name: str
    encode: Callable[[str], tuple[list[int], list[tuple[int, int]]]]


@pytest.fixture(scope="module")
def encoders(data_dir: Path) -> list[Encoder]:
    """Two WordPiece vocabularies (one strips accents and case), a SentencePiece one, bytes."""
    folder = data_dir / "tokenizers"
    bert = [
        Encoder(name, bert_encoder(folder / name))
        for name in ("bert-base-multilingual-cased", "bert-base-uncased")
    ]
    unigram = folder / "xlm-roberta-base_from_multilingual-e5-small" / "tokenizer.json"
    return [
        *bert,
        Encoder("xlm-roberta", fast_encoder(Tokenizer.from_file(str(unigram)))),
        Encoder("bytes", fast_encoder(bytes_tokenizer())),
    ]


def bytes_tokenizer() -> Tokenizer:
    """One piece per byte, spaces included: characters of several bytes give equal spans."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    return tokenizer


def bert_encoder(folder: Path) -> Callable[[str], tuple[list[int], list[tuple[int, int]]]]:
    tokenizer = AutoTokenizer.from_pretrained(str(folder))

    def encode(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        made = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return made["input_ids"], made["offset_mapping"]

    return encode


def fast_encoder(tokenizer: Tokenizer) -> Callable[[str], tuple[list[int], list[tuple[int, int]]]]:
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        made = tokenizer.encode(text, add_special_tokens=False)
        return made.ids, made.offsets

    return encode


def written(text: str) -> Parse:
    """A parse of one of our own lines: each word hangs from the one before it."""
    tokens = text.split(" ")
    misc = ["SpaceAfter=No" if token.endswith("+") else None for token in tokens]
    forms = [token.removesuffix("+") for token in tokens]
    words = tuple(
        Word(number, form, head=number - 1, misc=spacing)
        for number, (form, spacing) in enumerate(zip(forms, misc, strict=True), 1)
    )
    own = tuple(Token(word.form, (word.id,)) for word in words)
    return parse_from_sentences([Sentence(words, own)], layout="spaces")


def check(encoder: Encoder, parse: Parse) -> None:
    """Everything that holds for any text, parse and tokenizer."""
    input_ids, offsets = encoder.encode(parse.text)
    alignment = align_pieces(parse.text, offsets, parse)
    heads = attach_heads(parse, alignment)
    context = f"{encoder.name}: {parse.text!r}"

    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(offsets)), context
    assert all(0 <= start <= end <= len(parse.text) for start, end in offsets), context
    for piece, (start, end) in enumerate(offsets):
        row, owner = alignment.words_of(piece), alignment.word_ids[piece]
        assert (len(row) > 0) == (parse.text[start:end].strip() != ""), (context, piece)
        assert owner in row if len(row) else owner == -1, (context, piece)
        assert all(parse.word_start[word] < end > start for word in row), (context, piece)
        assert (heads[piece] == -2) == (owner == -1), (context, piece)
    owned = alignment.word_ids[alignment.word_ids >= 0]
    assert np.array_equal(np.flatnonzero(~alignment.pieceless), np.unique(owned)), context
    check_forest(heads, alignment.word_ids, parse, context)

    features = segment_features(parse, input_ids, offsets)
    assert features.head.tolist() == heads.tolist(), context
    assert features.word_ids.tolist() == alignment.word_ids.tolist(), context


def check_forest(heads: np.ndarray, owners: np.ndarray, parse: Parse, context: str) -> None:
    """One root for every sentence with pieces; every piece reaches its own sentence's."""
    sentence = parse.sentence_ids()
    roots = {}
    for piece, head in enumerate(heads):
        if head == -1:
            assert roots.setdefault(sentence[owners[piece]], piece) == piece, context
    for piece in np.flatnonzero(heads != -2):
        top = piece
        for _ in heads:
            top = heads[top] if heads[top] >= 0 else top
        assert roots[sentence[owners[piece]]] == top, context


@pytest.mark.slow
@pytest.mark.parametrize("script", TREEBANKS)
def test_alignment_holds_on_treebank_text(script, encoders, data_dir) -> None:
    stream = read_conllu(data_dir / "treebanks" / f"{TREEBANKS[script]}.conllu")
    sentences = list(islice(stream, 60))
    for encoder in encoders:
        for sentence in sentences[:55]:
            check(encoder, parse_from_sentences([sentence]))
        check(encoder, parse_from_sentences(sentences[55:]))


@pytest.mark.parametrize("kind", WRITTEN)
def test_alignment_holds_on_odd_text(kind: str, encoders: list[Encoder]) -> None:
    for encoder in encoders:
        check(encoder, written(WRITTEN[kind]))
