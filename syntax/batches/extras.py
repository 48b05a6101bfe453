"""Optional arrays about pieces: characters, places, windows, and the nodes before truncation."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.batches import kernels
from syntax.batches.derived import node_columns
from syntax.batches.segments import FlatExamples
from syntax.batches.sequences import Sequences
from syntax.batches.spec import AssemblySpec
from syntax.batches.tokens import first_of_tokens, words_of_tokens
from syntax.errors import SpecError
from syntax.matrices.offsets import sizes

TO_THE_END: Final = int(np.iinfo(np.int32).max)

_SMALL: Final = int(np.iinfo(np.int16).max)


def extra_columns(
    sequences: Sequences,
    nodes: kernels.Nodes,
    node_offsets: NDArray[np.int64],
    width: int,
    spec: AssemblySpec,
) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    origin = sequences.origin
    if origin is not None:
        columns["example_index"] = origin.example
        columns["choice_index"] = origin.choice
        columns["window_index"] = origin.window
    of_pieces = _of_pieces(sequences, spec)
    if of_pieces:
        # The flat piece at each position, -1 for none. *Shape:* (B, width).
        at = np.full((len(node_offsets) - 1, width), -1, np.int64)
        shown = (nodes.column >= 0) & (nodes.piece >= 0)
        row = np.repeat(np.arange(len(at)), sizes(node_offsets))
        at[row[shown], nodes.column[shown]] = nodes.piece[shown]
        for name, (column, padding) in of_pieces.items():
            nothing = np.full((1, *column.shape[1:]), padding, column.dtype)
            # The number -1 is that of the last.
            columns[name] = np.concatenate([column, nothing])[at]
    if spec.offsets:
        columns["shown_characters"] = _shown_characters(sequences)
    if spec.nodes:
        columns.update(_padded_nodes(sequences.examples, nodes, node_offsets))
    return columns


def _of_pieces(
    sequences: Sequences, spec: AssemblySpec
) -> dict[str, tuple[NDArray[Any], NDArray[Any] | int]]:
    examples, origin = sequences.examples, sequences.origin
    columns: dict[str, tuple[NDArray[Any], NDArray[Any] | int]] = {}
    if spec.offsets:
        columns["offset_mapping"] = (_offsets(examples), 0)
        # The place of each piece within its segment.
        starts = np.repeat(examples.segment_offsets[:-1], sizes(examples.segment_offsets))
        columns["piece_ids"] = ((np.arange(len(starts)) - starts).astype(np.int32), -1)
    if spec.first_pieces:
        columns["first_pieces"] = (first_of_words(examples), False)
    if spec.token_ids:
        columns.update(_tokens(examples))
    if origin is not None and origin.max_context is not None:
        columns["is_max_context"] = (origin.max_context, False)
    return columns


def _offsets(examples: FlatExamples) -> NDArray[np.int32]:
    if examples.offsets is None:
        raise SpecError("offsets are asked for, but the examples came without; read them, too")
    return examples.offsets


def _tokens(examples: FlatExamples) -> dict[str, tuple[NDArray[Any], NDArray[Any] | int]]:
    ids, bounds = examples.token_ids, examples.segment_offsets
    if ids is None:
        raise SpecError("token_ids are asked for, but the examples came without; read them, too")
    return {
        "token_ids": (ids, -1),
        "token_starts": (first_of_tokens(ids, bounds), False),
        "token_words": (words_of_tokens(ids, bounds, first_of_words(examples)), 0),
    }


def first_of_words(examples: FlatExamples) -> NDArray[np.bool_]:
    """True for the first piece of a word; later ones hang from it. *Shape:* (N,)."""
    starts = np.repeat(examples.segment_offsets[:-1], sizes(examples.segment_offsets))
    above = np.where(examples.head >= 0, examples.head + starts, np.arange(len(starts)))
    later = (examples.head >= 0) & (examples.word_ids[above] == examples.word_ids)
    first: NDArray[np.bool_] = (examples.word_ids >= 0) & ~later
    return first


def _shown_characters(sequences: Sequences) -> NDArray[np.int32]:
    examples, spans = sequences.examples, sequences.spans
    offsets, starts = _offsets(examples), examples.segment_offsets[:-1]
    lengths = sizes(examples.segment_offsets)
    before, behind = spans[:, 0] > 0, spans[:, 1] < lengths
    shown = np.stack([np.zeros(len(spans), np.int32), np.full(len(spans), TO_THE_END)], axis=1)
    shown = shown.astype(np.int32)
    shown[before, 0] = offsets[(starts + spans[:, 0] - 1)[before], 1]
    shown[behind, 1] = offsets[(starts + spans[:, 1])[behind], 0]
    counts = sizes(examples.example_offsets)
    laid = np.zeros((len(examples), int(counts.max(initial=0)), 2), np.int32)
    laid[np.arange(laid.shape[1]) < counts[:, None]] = shown
    return laid


def _padded_nodes(
    examples: FlatExamples, nodes: kernels.Nodes, node_offsets: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    counts = sizes(node_offsets)
    width = int(counts.max(initial=0))
    real = np.arange(width) < counts[:, None]
    places = np.int16 if width <= _SMALL else np.int32
    starts = np.repeat(node_offsets[:-1], counts)
    columns = {
        "parents": np.maximum(nodes.heads, -1).astype(places),
        "source": (nodes.source - starts).astype(places),
        "column": nodes.column.astype(places),
    }
    known = node_columns(examples, nodes)
    columns.update({name: known[name]() for name in ("special", "upos", "marks") if name in known})
    padded = {}
    for name, column in columns.items():
        signed = np.issubdtype(column.dtype, np.signedinteger)
        rows = np.full(real.shape, -1 if signed else 0, column.dtype)
        rows[real] = column
        padded[f"node_{name}"] = rows
    return padded
