"""The compiled loops of the alignment, over 0-based indices through the whole text.

`L` pieces, `W` words. All are linear in L + W + the number of piece-word pairs, if spans start and
end in order. They stand in one file because numba's cache notices changes only there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit

Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]

OK = 0
BAD_OFFSETS = 1
BAD_TREE = 2


@njit(cache=True, nogil=True)
def is_space(code: int) -> bool:
    if code < 0x85:
        return code == 32 or 9 <= code <= 13 or 28 <= code <= 31
    if code < 0x2000:
        return code == 0x85 or code == 0xA0 or code == 0x1680
    if code <= 0x200A:
        return True
    return code in (0x2028, 0x2029, 0x202F, 0x205F, 0x3000)


@njit(cache=True, nogil=True)
def trim(codes: NDArray[np.uint32], offsets: Int32) -> tuple[int, Int32]:
    """First piece whose span does not lie in the text, or -1; spans without outer white space."""
    spans = offsets.copy()
    for piece in range(len(offsets)):
        start, end = offsets[piece, 0], offsets[piece, 1]
        if start < 0 or end < start or end > len(codes):
            return piece, spans
        while start < end and is_space(codes[start]):
            start += 1
        while end > start and is_space(codes[end - 1]):
            end -= 1
        spans[piece, 0] = start
        spans[piece, 1] = end
    return -1, spans


@njit(cache=True, nogil=True)
def global_parents(head: Int32, sentence_first_word: Int32) -> tuple[Int32, Int32]:
    """Parent of each word through the whole text (-1 root, -2 no such word) and its sentence."""
    words = len(head)
    parents = np.empty(words, np.int32)
    sentence_of = np.empty(words, np.int32)
    for sentence in range(len(sentence_first_word)):
        first = sentence_first_word[sentence]
        is_last = sentence + 1 == len(sentence_first_word)
        end = words if is_last else sentence_first_word[sentence + 1]
        for word in range(first, end):
            sentence_of[word] = sentence
            in_range = 0 <= head[word] <= end - first
            parents[word] = -2 if not in_range else first + head[word] - 1 if head[word] else -1
    return parents, sentence_of


@njit(cache=True, nogil=True)
def are_trees(parents: Int32, sentence_of: Int32, sentences: int) -> bool:
    words = len(parents)
    roots = np.zeros(sentences, np.int32)
    reached = np.zeros(words, np.int32)  # 1 + the word whose climb came by first, 0 not yet
    for start in range(words):
        if parents[start] == -2:
            return False
        if parents[start] == -1:
            roots[sentence_of[start]] += 1
        word = start
        while word >= 0 and reached[word] == 0:
            reached[word] = start + 1
            word = parents[word]
        if word >= 0 and reached[word] == start + 1:
            return False
    return bool(np.all(roots == 1))


@njit(cache=True, nogil=True)
def carriers(parents: Int32, word_start: Int32, word_end: Int32, token_first_word: Int32) -> Bool:
    """Words that may own pieces: of those of one shared span, the first whose head lies outside."""
    words = len(parents)
    carries = np.ones(words, np.bool_)
    for token in range(len(token_first_word)):
        first = token_first_word[token]
        end = words if token + 1 == len(token_first_word) else token_first_word[token + 1]
        if end - first < 2 or word_start[first] != word_start[first + 1]:
            continue
        if word_end[first] != word_end[first + 1]:
            continue
        carrier = first
        for word in range(end - 1, first - 1, -1):
            carries[word] = False
            if not first <= parents[word] < end:
                carrier = word
        carries[carrier] = True
    return carries


@njit(cache=True, nogil=True)
def owners(spans: Int32, word_start: Int32, word_end: Int32, carries: Bool) -> Int32:
    """Owner of each piece: the word with the largest overlap, the leftmost of equals; -1 none."""
    words = len(word_start)
    owner = np.full(len(spans), -1, np.int32)
    low = 0
    for piece in range(len(spans)):
        start, end = spans[piece, 0], spans[piece, 1]
        if start == end:
            continue
        low = _first_overlap(low, start, word_end)
        best = 0
        word = low
        while word < words and word_start[word] < end:
            overlap = min(end, word_end[word]) - max(start, word_start[word])
            if carries[word] and overlap > best:
                best = overlap
                owner[piece] = word
            word += 1
    return owner


@njit(cache=True, nogil=True)
def overlaps(spans: Int32, word_start: Int32, word_end: Int32) -> tuple[Int32, Int32]:
    """Pairs of a piece and a word that share a character, as CSR rows over the pieces."""
    indptr = np.zeros(len(spans) + 1, np.int32)
    _overlaps(spans, word_start, word_end, indptr, np.empty(0, np.int32))
    indices = np.empty(indptr[-1], np.int32)
    _overlaps(spans, word_start, word_end, indptr, indices)
    return indptr, indices


@njit(cache=True, nogil=True)
def _overlaps(
    spans: Int32, word_start: Int32, word_end: Int32, indptr: Int32, indices: Int32
) -> None:
    """Count the pairs into ``indptr`` and, where ``indices`` has room, write them."""
    count = 0
    low = 0
    for piece in range(len(spans)):
        start, end = spans[piece, 0], spans[piece, 1]
        if start < end:
            low = _first_overlap(low, start, word_end)
            word = low
            while word < len(word_start) and word_start[word] < end:
                if min(end, word_end[word]) > max(start, word_start[word]):
                    if len(indices):
                        indices[count] = word
                    count += 1
                word += 1
        indptr[piece + 1] = count


@njit(cache=True, nogil=True)
def _first_overlap(low: int, start: int, word_end: Int32) -> int:
    """First word that ends after ``start``, also where a piece starts before its predecessor."""
    while low > 0 and word_end[low - 1] > start:
        low -= 1
    while low < len(word_end) and word_end[low] <= start:
        low += 1
    return low


@njit(cache=True, nogil=True)
def first_pieces(owner: Int32, words: int) -> Int32:
    first = np.full(words, -1, np.int32)
    for piece in range(len(owner) - 1, -1, -1):
        if owner[piece] >= 0:
            first[owner[piece]] = piece
    return first


@njit(cache=True, nogil=True)
def anchors(parents: Int32, first_piece: Int32) -> Int32:
    """First piece of the nearest word at or above each word that owns one; -1 if none does."""
    unknown = -2
    anchor = np.full(len(parents), unknown, np.int32)
    for start in range(len(parents)):
        word = start
        while word >= 0 and anchor[word] == unknown and first_piece[word] < 0:
            word = parents[word]
        found = -1
        if word >= 0:
            found = first_piece[word] if anchor[word] == unknown else anchor[word]
        word = start
        while word >= 0 and anchor[word] == unknown and first_piece[word] < 0:
            anchor[word] = found
            word = parents[word]
        if word >= 0 and anchor[word] == unknown:
            anchor[word] = found
    return anchor


@njit(cache=True, nogil=True)
def attach(owner: Int32, parents: Int32, sentence_of: Int32, sentences: int) -> Int32:
    """Parent of each piece in the attach tree: -1 a sentence's root, -2 a piece without a word."""
    first_piece = first_pieces(owner, len(parents))
    anchor = anchors(parents, first_piece)
    head = np.full(len(owner), -2, np.int32)
    promoted = np.full(sentences, -1, np.int32)
    for piece in range(len(owner)):
        word = owner[piece]
        if word < 0:
            continue
        above = first_piece[word]
        if above == piece:
            parent = parents[word]
            above = anchor[parent] if parent >= 0 else -1
            if parent >= 0 and above < 0:
                above = promoted[sentence_of[word]]
                if above < 0:
                    promoted[sentence_of[word]] = piece
        head[piece] = above
    return head


@njit(cache=True, nogil=True)
def segment_columns(
    codes: NDArray[np.uint32],
    offsets: Int32,
    head: Int32,
    word_start: Int32,
    word_end: Int32,
    token_first_word: Int32,
    sentence_first_word: Int32,
    upos: NDArray[np.uint8],
    deprel: NDArray[np.uint8],
) -> Any:
    """Status, offending piece, and the columns of `SegmentFeatures` but for ids and offsets."""
    sentences = len(sentence_first_word)
    wrong, spans = trim(codes, offsets)
    parents, sentence_of = global_parents(head, sentence_first_word)
    status = OK
    if wrong >= 0:
        status = BAD_OFFSETS
    elif not are_trees(parents, sentence_of, sentences):
        status = BAD_TREE
    if status != OK:
        none, no_tags = np.empty(0, np.int32), np.empty(0, np.uint8)
        return status, wrong, none, none, no_tags, no_tags, none
    carries = carriers(parents, word_start, word_end, token_first_word)
    owner = owners(spans, word_start, word_end, carries)
    tree = attach(owner, parents, sentence_of, sentences)
    return (
        status,
        wrong,
        tree,
        owner,
        _of_owner(upos, owner, np.uint8(0)),
        _of_owner(deprel, owner, np.uint8(0)),
        _of_owner(sentence_of, owner, np.int32(-1)),
    )


@njit(cache=True, nogil=True)
def _of_owner(values: Any, owner: Int32, none: Any) -> Any:
    shown = np.full(len(owner), none, values.dtype)
    for piece in range(len(owner)):
        if owner[piece] >= 0:
            shown[piece] = values[owner[piece]]
    return shown


@njit(cache=True, nogil=True)
def batch_columns(
    codes: NDArray[np.uint32],
    offsets: Int32,
    head: Int32,
    word_start: Int32,
    word_end: Int32,
    token_first_word: Int32,
    sentence_first_word: Int32,
    upos: NDArray[np.uint8],
    deprel: NDArray[np.uint8],
    bounds: NDArray[np.int64],
) -> Any:
    """First of N texts whose status is not `OK`, or -1; `segment_columns` of all, end to end."""
    pieces = len(offsets)
    tree, owner = np.empty(pieces, np.int32), np.empty(pieces, np.int32)
    tags, relations = np.empty(pieces, np.uint8), np.empty(pieces, np.uint8)
    sentence_ids = np.empty(pieces, np.int32)
    wrong = -1
    for text in range(bounds.shape[1] - 1):
        char, char_end = bounds[0, text], bounds[0, text + 1]
        piece, piece_end = bounds[1, text], bounds[1, text + 1]
        word, last = bounds[2, text], bounds[2, text + 1]
        status, _, tree_, owner_, tags_, relations_, sentences_ = segment_columns(
            codes[char:char_end],
            offsets[piece:piece_end],
            head[word:last],
            word_start[word:last],
            word_end[word:last],
            token_first_word[bounds[3, text] : bounds[3, text + 1]],
            sentence_first_word[bounds[4, text] : bounds[4, text + 1]],
            upos[word:last],
            deprel[word:last],
        )
        if status != OK:
            wrong = text
            break
        tree[piece:piece_end] = tree_
        owner[piece:piece_end] = owner_
        tags[piece:piece_end] = tags_
        relations[piece:piece_end] = relations_
        sentence_ids[piece:piece_end] = sentences_
    return wrong, tree, owner, tags, relations, sentence_ids
