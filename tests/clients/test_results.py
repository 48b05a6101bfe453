from __future__ import annotations

import numpy as np
import pytest

from clients.client.results import ItemError, ParsedItem, decode_parse_result
from syntax.errors import SentenceTooLongError

WORD = {"lemma": None, "xpos": None, "feats": None}
ANSWER = {
    "parser": {"name": "udpipe/english-ewt", "fingerprint": "p"},
    "tokenizer": {"name": "tok", "fingerprint": "t"},
    "items": [
        {
            "key": "k",
            "cached": False,
            "text": "Don't! Go.",
            "sentences": [
                {
                    "start_char": 0,
                    "end_char": 6,
                    "tokens": [
                        {"form": "Don't", "start_char": 0, "end_char": 5, "word_ids": [1, 2]},
                        {"form": "!", "start_char": 5, "end_char": 6, "word_ids": [3]},
                    ],
                    "words": [
                        WORD
                        | {"id": 1, "form": "Do", "upos": "AUX", "head": 0, "deprel": "root"}
                        | {"start_char": 0, "end_char": 2},
                        WORD
                        | {"id": 2, "form": "n't", "upos": "PART", "head": 1, "deprel": "advmod"}
                        | {"start_char": 2, "end_char": 5},
                        WORD
                        | {"id": 3, "form": "!", "upos": "PUNCT", "head": 1, "deprel": "punct"}
                        | {"start_char": 5, "end_char": 6},
                    ],
                },
                {
                    "start_char": 7,
                    "end_char": 10,
                    "tokens": [
                        {"form": "Go", "start_char": 7, "end_char": 9, "word_ids": [1]},
                        {"form": ".", "start_char": 9, "end_char": 10, "word_ids": [2]},
                    ],
                    "words": [
                        WORD
                        | {"id": 1, "form": "Go", "upos": "VERB", "head": 0, "deprel": "root"}
                        | {"start_char": 7, "end_char": 9},
                        WORD
                        | {"id": 2, "form": ".", "upos": "PUNCT", "head": 1, "deprel": "punct"}
                        | {"start_char": 9, "end_char": 10},
                    ],
                },
            ],
            "wordpieces": {
                "input_ids": [5, 6, 7],
                "offset_mapping": [[0, 5], [5, 6], [9, 10]],
                "word_ids": [0, 2, None],
                "parents": [-1, 0, -1],
            },
            "matrices": {
                "distance": [[0, 1, 255], [1, 0, 255], [255, 255, 0]],
                "depth": [0, 1, 0],
                "ancestor": [[True, False, False], [True, True, False], [False, False, True]],
            },
        },
        {"error": {"error_type": "sentence_too_long", "message": "m", "detail": {"words": 9}}},
    ],
}


@pytest.fixture
def result():
    return decode_parse_result(ANSWER)


def test_sentences_are_conllu_sentences_with_trees(result):
    item = result.items[0]
    assert isinstance(item, ParsedItem)
    first, second = item.sentences
    assert first.text == "Don't!"
    assert first.tree.heads == (0, 1, 1)
    assert [token.form for token in first.tokens] == ["Don't", "!"]
    assert first.tokens[0].word_ids == (1, 2)
    assert [word.deprel for word in second.words] == ["root", "punct"]


def test_columns_keep_the_character_spans(result):
    parse = result.items[0].parse
    assert parse.text == result.items[0].text == "Don't! Go."
    assert list(zip(parse.word_start, parse.word_end, strict=True)) == [
        (0, 2),
        (2, 5),
        (5, 6),
        (7, 9),
        (9, 10),
    ]
    assert parse.parents().tolist() == [-1, 0, 0, -1, 3]
    assert (parse.token_first_word, parse.sentence_first_word) == ([0, 2, 3, 4], [0, 3])


def test_wordpieces_are_arrays_and_no_word_is_minus_one(result):
    pieces = result.items[0].wordpieces
    assert len(pieces) == 3
    assert pieces.word_ids.tolist() == [0, 2, -1]
    assert pieces.offsets.shape == (3, 2)
    assert {a.dtype for a in (pieces.input_ids, pieces.parents)} == {np.dtype(np.int32)}


def test_matrices_have_the_kernels_dtypes(result):
    matrices = result.items[0].matrices
    assert {name: m.dtype.name for name, m in matrices.items()} == {
        "distance": "uint8",
        "depth": "uint8",
        "ancestor": "bool",
    }
    assert matrices["distance"][0, 2] == 255


def test_long_distances_need_sixteen_bits():
    item = dict(ANSWER["items"][0], matrices={"distance": [[0, 300], [300, 0]], "depth": None})
    result = decode_parse_result(ANSWER | {"items": [item], "tokenizer": None})
    assert result.items[0].matrices["distance"].dtype == np.uint16
    assert "depth" not in result.items[0].matrices
    assert result.tokenizer is None


def test_an_item_that_failed_is_an_error_value(result):
    failed = result.items[1]
    assert isinstance(failed, ItemError)
    assert isinstance(failed.error, SentenceTooLongError)
    assert (failed.error_type, failed.message) == ("sentence_too_long", "m")
    assert failed.error.detail == {"words": 9}
    with pytest.raises(SentenceTooLongError):
        result.parsed()


def test_results_are_sequences_of_items(result):
    assert len(result) == 2
    assert list(result) == list(result.items)
    assert result.parser.name == "udpipe/english-ewt"
    assert result.json is ANSWER
