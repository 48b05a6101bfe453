"""Results of answers: dtypes of arrays, and no word as -1; the rest is in `test_client`."""

from __future__ import annotations

from clients.client.results import decode_parse_result

WORD = {"lemma": None, "xpos": None, "feats": None, "upos": "VERB", "deprel": "root"}
GO = {
    "start_char": 0,
    "end_char": 3,
    "tokens": [{"form": "Go!", "start_char": 0, "end_char": 3, "word_ids": [1, 2]}],
    "words": [
        WORD | {"id": 1, "form": "Go", "head": 0, "start_char": 0, "end_char": 2},
        WORD | {"id": 2, "form": "!", "head": 1, "start_char": 2, "end_char": 3},
    ],
}
ITEM = {"key": "k", "cached": False, "text": "Go!", "sentences": [GO]}
PIECES = {
    "input_ids": [5, 6, 7],
    "offset_mapping": [[0, 2], [2, 3], [3, 3]],
    "word_ids": [0, 1, None],
    "parents": [-1, 0, -1],
}


def decoded(**parts):
    parser = {"name": "udpipe/english-ewt", "fingerprint": "p"}
    result = decode_parse_result({"parser": parser, "tokenizer": None, "items": [ITEM | parts]})
    assert result.tokenizer is None
    return result.parsed()[0]


def test_wordpieces_are_arrays_and_no_word_is_minus_one():
    pieces = decoded(wordpieces=PIECES).wordpieces
    assert len(pieces) == 3
    assert pieces.word_ids.tolist() == [0, 1, -1]
    assert pieces.offsets.shape == (3, 2)
    assert {a.dtype.name for a in (pieces.input_ids, pieces.parents)} == {"int32"}


def test_matrices_have_the_kernels_dtypes_and_long_distances_sixteen_bits():
    matrices = {
        "distance": [[0, 1, 255], [1, 0, 255], [255, 255, 0]],
        "depth": [0, 1, 0],
        "ancestor": [[True, False, False], [True, True, False], [False, False, True]],
    }
    found = decoded(wordpieces=PIECES, matrices=matrices).matrices
    dtypes = {name: matrix.dtype.name for name, matrix in found.items()}
    assert dtypes == {"distance": "uint8", "depth": "uint8", "ancestor": "bool"}
    assert found["distance"][0, 2] == 255
    long = decoded(matrices={"distance": [[0, 300], [300, 0]], "depth": None}).matrices
    assert long["distance"].dtype.name == "uint16"
    assert "depth" not in long


def test_columns_keep_the_character_spans_and_the_tokens():
    item = decoded()
    spans = zip(item.parse.word_start, item.parse.word_end, strict=True)
    assert [*spans] == [(0, 2), (2, 3)]
    assert item.parse.parents().tolist() == [-1, 0]
    assert (item.parse.token_first_word, item.parse.sentence_first_word) == ([0], [0])
    (sentence,) = item.sentences
    assert (sentence.text, sentence.tree.heads) == ("Go!", (0, 1))
    assert [(token.form, token.word_ids) for token in sentence.tokens] == [("Go!", (1, 2))]
