"""Tokenizers whose pieces give the text back."""

from __future__ import annotations

import pytest

from clients.bpe import BpeOptions, train_bpe
from clients.wordpiece import SPECIAL_TOKENS
from syntax.errors import InputError, SpecError

TEXTS = [
    "Zwei Männer (alt) sehen den Fluss.",
    "Der Fluss, den sie sehen, ist breit.",
    "L'homme dit « aujourd'hui ».",
]


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_pieces_give_the_text_back(kind) -> None:
    tokenizer = train_bpe(lambda: TEXTS, BpeOptions(kind, 200)).tokenizer
    for text in TEXTS:
        found = tokenizer.encode(text)
        assert found.tokens[0] == "[CLS]"
        assert found.tokens[-1] == "[SEP]"
        assert tokenizer.decode(found.ids) == text


def test_the_same_texts_give_the_same_bytes_in_any_order() -> None:
    for kind in ("bpe", "words"):
        one, other = (
            train_bpe(lambda texts=texts: texts, BpeOptions(kind, 100))
            for texts in (TEXTS, TEXTS[::-1])
        )
        assert one.tokenizer.to_str() == other.tokenizer.to_str()
        assert one.fingerprint == other.fingerprint


def test_words_are_whole_or_unknown() -> None:
    tokenizer = train_bpe(lambda: TEXTS, BpeOptions("words", 8)).tokenizer
    assert tokenizer.get_vocab_size() == 8
    assert [tokenizer.token_to_id(name) for name in SPECIAL_TOKENS] == [0, 1, 2, 3, 4]
    assert "[UNK]" in tokenizer.encode("Der Fluss ist breit.").tokens


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_further_special_tokens_come_behind_the_usual_ones(kind) -> None:
    special = ("<python>", "<en>")
    tokenizer = train_bpe(lambda: TEXTS, BpeOptions(kind, 100, special)).tokenizer
    ids = [tokenizer.token_to_id(name) for name in special]
    assert ids == [len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 1]
    found = tokenizer.encode(f"<en>{TEXTS[0]}").ids
    assert found[1] == ids[1]
    assert tokenizer.decode(found) == tokenizer.decode(tokenizer.encode(TEXTS[0]).ids)


def test_what_cannot_be_trained_is_refused() -> None:
    with pytest.raises(SpecError, match="`vocab_size` is 5"):
        BpeOptions(vocab_size=5)
    with pytest.raises(InputError, match="no words"):
        train_bpe(lambda: [" "], BpeOptions())
