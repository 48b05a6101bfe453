"""The compiled passes from flat pieces (N in all) to nodes with special tokens (M), and to rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit
from syntax.matrices.heads import ROOT
from syntax.matrices.kernels import Trees

IntArray = NDArray[np.int32]
Offsets = NDArray[np.int64]

LONGEST_FIRST, ONLY_FIRST, ONLY_SECOND, NONE = range(4)

EDGE_ROOT, EDGE_LAST_PIECE, EDGE_NONE = range(3)

NOTHING = -1


class Frame(NamedTuple):
    """Number of special tokens in each place, whose ids are one array, and how they hang."""

    prefix: int
    separator: int
    suffix: int
    joint_root: bool
    edge: int


class Nodes(NamedTuple):
    """Sequences before truncation, end to end. *Shape:* (M,) each.

    Attributes:
        heads: Counted within each sequence; -1 for none.
        source, column: As in `syntax.matrices.kernels.Trees`.
        piece: Flat position of the piece, or ``-1 - k`` for the special token ``k``.
        type_id: 0 in the first part and for the special tokens up to its end, then 1.
    """

    heads: IntArray
    source: IntArray
    column: IntArray
    piece: IntArray
    segment: IntArray
    type_id: IntArray


class Cut(NamedTuple):
    """Rules of shortening parts; the last limit and side hold for all later parts, too.

    ``tie_last`` shortens the last of equally long parts, not the one that was the shortest before.
    """

    max_length: int
    strategy: int
    tie_last: bool
    limits: Offsets
    from_front: NDArray[np.bool_]


@njit(cache=True, nogil=True)
def keep(
    part_offsets: Offsets, example_offsets: Offsets, frame: Frame, cut: Cut, spans: IntArray
) -> int:
    """Write the run that each part keeps into ``spans`` (P, 2); the first misfit example, or -1."""
    last_limit, last_side = len(cut.limits) - 1, len(cut.from_front) - 1
    for example in range(len(example_offsets) - 1):
        first, end = example_offsets[example], example_offsets[example + 1]
        excess = _specials(frame, end - first) - cut.max_length
        for part in range(first, end):
            length = part_offsets[part + 1] - part_offsets[part]
            spans[part, 1] = min(length, cut.limits[min(part - first, last_limit)])
            excess += spans[part, 1]
        if excess > 0 and not _shorten(spans[first:end, 1], excess, cut):
            return example
        for part in range(first, end):
            length = part_offsets[part + 1] - part_offsets[part]
            front = cut.from_front[min(part - first, last_side)]
            spans[part, 0] = length - spans[part, 1] if front else 0
            spans[part, 1] += spans[part, 0]
    return -1


@njit(cache=True, nogil=True)
def _specials(frame: Frame, parts: int) -> int:
    return frame.prefix + max(parts - 1, 0) * frame.separator + frame.suffix


@njit(cache=True, nogil=True)
def _shorten(kept: IntArray, excess: int, cut: Cut) -> bool:
    """Remove ``excess`` pieces from one example's parts; False if they have too few."""
    if cut.strategy == LONGEST_FIRST:
        if kept.sum() < excess:
            return False
        before = kept.copy()
        for _ in range(excess):
            longest = 0
            for part in range(1, len(kept)):
                wins_tie = cut.tie_last or before[part] < before[longest]
                if kept[part] > kept[longest] or (kept[part] == kept[longest] and wins_tie):
                    longest = part
            kept[longest] -= 1
        return True
    only = 0 if cut.strategy == ONLY_FIRST else 1
    if cut.strategy == NONE or only >= len(kept) or kept[only] < excess:
        return False
    kept[only] -= excess
    return True


class Segments(NamedTuple):
    """S segments of B examples.

    ``joined`` (S,) have no special tokens before them; ``spans`` (S, 2) are the pieces that each
    keeps, counted within it.
    """

    offsets: Offsets
    example_offsets: Offsets
    joined: NDArray[np.bool_]
    spans: IntArray


@njit(cache=True, nogil=True)
def place(
    parents: IntArray,
    source: IntArray,
    segments: Segments,
    frame: Frame,
    nodes: Nodes,
    node_offsets: Offsets,
    lengths: IntArray,
) -> None:
    """Frame the segments of every example with special tokens, and hang everything.

    ``parents`` and ``source`` (N,) are positions in the whole array of pieces. Written are
    ``nodes`` (M,), ``node_offsets`` (B + 1,) and ``lengths`` (B,), the nodes that each keeps.
    """
    segment_offsets, example_offsets, joined, spans = segments
    node = 0
    for example in range(len(example_offsets) - 1):
        node_offsets[example] = node
        first, end = example_offsets[example], example_offsets[example + 1]
        start = node
        root = 0 if frame.joint_root else NOTHING
        nearest = root if frame.edge != EDGE_NONE else NOTHING
        anchor = nearest
        anchored = frame.edge == EDGE_LAST_PIECE and not joined[first + 1 : end].all()
        node, column = _place_specials(nodes, node, 0, 0, frame.prefix, root, 0)
        if frame.prefix > 0:
            nodes.heads[start] = NOTHING
        type_id = 0
        for segment in range(first, end):
            begin, stop = segment_offsets[segment], segment_offsets[segment + 1]
            if segment > first and not joined[segment]:
                node, column = _place_specials(
                    nodes, node, column, frame.prefix, frame.separator, anchor, type_id
                )
                type_id = 1
                anchor = nearest
            nodes.segment[node : node + stop - begin] = segment - first
            nodes.type_id[node : node + stop - begin] = type_id
            if anchored and stop > begin:
                anchor = source[stop - 1] + node - begin - start
            shown, hidden = begin + spans[segment, 0], begin + spans[segment, 1]
            for piece in range(begin, stop):
                nodes.heads[node] = _hang(parents[piece], node - piece - start, root)
                nodes.source[node] = source[piece] + node - piece
                nodes.piece[node] = piece
                kept = shown <= piece < hidden
                nodes.column[node] = column + piece - shown if kept else NOTHING
                node += 1
            column += hidden - shown
        token = frame.prefix + frame.separator
        node, column = _place_specials(nodes, node, column, token, frame.suffix, anchor, type_id)
        lengths[example] = column
    node_offsets[-1] = node


@njit(cache=True, nogil=True)
def _hang(parent: int, shift: int, root: int) -> int:
    if parent >= 0:
        return parent + shift
    return root if parent == ROOT else NOTHING


@njit(cache=True, nogil=True)
def _place_specials(
    nodes: Nodes, node: int, column: int, first: int, count: int, head: int, type_id: int
) -> tuple[int, int]:
    for token in range(first, first + count):
        nodes.heads[node] = head
        nodes.source[node] = node
        nodes.column[node] = column
        nodes.piece[node] = -1 - token
        nodes.segment[node] = NOTHING
        nodes.type_id[node] = type_id
        node += 1
        column += 1
    return node, column


@njit(cache=True, nogil=True)
def widest(
    bounds: Offsets,
    begins: Offsets,
    stops: Offsets,
    first_window: Offsets,
    runs: IntArray,
    best: NDArray[np.bool_],
) -> None:
    """Find the window in which each piece of a sequence has most context, the first of several.

    As BERT's code for SQuAD: the lesser of the pieces before and after it in the window, and a
    hundredth of the window's length. Windows show ``runs`` (W, 2) of the part that is spread;
    ``best`` is written, for each window all pieces of its sequence.
    """
    start = 0
    for sequence in range(len(bounds) - 1):
        size = bounds[sequence + 1] - bounds[sequence]
        begin, stop = begins[sequence] - bounds[sequence], stops[sequence] - bounds[sequence]
        best[start : start + begin] = True
        best[start + stop : start + size] = True
        scores = np.full(stop - begin, -1, np.int64)
        place = np.full(stop - begin, -1, np.int64)
        for window in range(first_window[sequence], first_window[sequence + 1]):
            low, high = runs[window, 0], runs[window, 1]
            for piece in range(low, high):
                score = 100 * min(piece - low, high - 1 - piece) + high - low
                if score > scores[piece]:
                    scores[piece] = score
                    place[piece] = start + begin + piece
            start += size
        for piece in range(stop - begin):
            if place[piece] >= 0:
                best[place[piece]] = True


@njit(cache=True, nogil=True)
def copy_runs(column: IntArray, starts: Offsets, ends: Offsets, taken: IntArray) -> None:
    at = 0
    for run in range(len(starts)):
        size = ends[run] - starts[run]
        source, target = column[starts[run] : ends[run]], taken[at : at + size]
        for index in range(size):
            target[index] = source[index]
        at += size


class Pieces(NamedTuple):
    """Columns of the flat pieces. *Shape:* (N,) each."""

    input_ids: IntArray
    word_ids: IntArray
    sentence_ids: IntArray
    upos: NDArray[np.uint8]
    deprel: NDArray[np.uint8]


class Rows(NamedTuple):
    """Columns of a padded batch. *Shape:* (B, L) each."""

    input_ids: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]
    attention_mask: NDArray[np.bool_]
    special_tokens_mask: NDArray[np.bool_]
    word_ids: IntArray
    segment_ids: IntArray
    sentence_ids: IntArray
    parents: IntArray
    upos: NDArray[np.uint8]
    deprel: NDArray[np.uint8]


@njit(cache=True, nogil=True)
def gather(
    nodes: Nodes,
    trees: Trees,
    pieces: Pieces,
    special_ids: NDArray[np.int64],
    type_ids: NDArray[np.int64],
    pad_id: int,
    rows: Rows,
) -> None:
    """Copy the kept nodes of every example into its row, and pad; deleted parents are replaced."""
    offsets = trees.offsets
    kept_above = np.empty(len(trees.order), np.int32)
    for example in range(len(offsets) - 1):
        first, end = offsets[example], offsets[example + 1]
        _pad(rows, example, pad_id)
        _find_kept(nodes.column, trees, first, end, kept_above)
        for node in range(first, end):
            column, piece = nodes.column[node], nodes.piece[node]
            if column < 0:
                continue
            rows.attention_mask[example, column] = True
            rows.token_type_ids[example, column] = type_ids[nodes.type_id[node]]
            rows.segment_ids[example, column] = nodes.segment[node]
            rows.parents[example, column] = kept_above[node]
            if piece < 0:
                rows.input_ids[example, column] = special_ids[-1 - piece]
                continue
            rows.input_ids[example, column] = pieces.input_ids[piece]
            rows.special_tokens_mask[example, column] = False
            rows.word_ids[example, column] = pieces.word_ids[piece]
            rows.sentence_ids[example, column] = pieces.sentence_ids[piece]
            rows.upos[example, column] = pieces.upos[piece]
            rows.deprel[example, column] = pieces.deprel[piece]


@njit(cache=True, nogil=True)
def _find_kept(columns: IntArray, trees: Trees, first: int, end: int, kept_above: IntArray) -> None:
    for index in range(first, end):
        node = trees.order[index]
        above = trees.parents[node]
        shown = columns[above] if above >= 0 else NOTHING
        kept_above[node] = shown if shown >= 0 or above < 0 else kept_above[above]


@njit(cache=True, nogil=True)
def _pad(rows: Rows, example: int, pad_id: int) -> None:
    rows.input_ids[example] = pad_id
    rows.token_type_ids[example] = 0
    rows.attention_mask[example] = False
    rows.special_tokens_mask[example] = True
    rows.word_ids[example] = NOTHING
    rows.segment_ids[example] = NOTHING
    rows.sentence_ids[example] = NOTHING
    rows.parents[example] = NOTHING
    rows.upos[example] = 0
    rows.deprel[example] = 0
