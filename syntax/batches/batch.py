"""From stored segments to a padded batch of model input."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.batches import kernels
from syntax.batches.derived import Columns, derive, node_columns
from syntax.batches.extras import extra_columns
from syntax.batches.segments import FlatExamples
from syntax.batches.sequences import Sequences, plan_sequences
from syntax.batches.spec import AssemblySpec
from syntax.errors import SpecError, TreeError
from syntax.matrices import COMPILED, MATRICES, MatrixBuffers
from syntax.matrices.forest import Forest, build_forest, write_matrices
from syntax.matrices.heads import link_heads, order_heads
from syntax.matrices.kernels import OrderedTrees
from syntax.matrices.offsets import round_up
from syntax.subwords import POLICIES, PieceTree, attach
from syntax.tokenizers import SpecialTokens

BatchBuffers = MatrixBuffers

_EDGE: Final = {
    "root": kernels.EDGE_ROOT,
    "last_piece": kernels.EDGE_LAST_PIECE,
    "none": kernels.EDGE_NONE,
}


class Batch(dict[str, Any]):
    """Arrays and lists by name, as a dict that notebooks show as a table."""

    def _repr_html_(self) -> str:
        from syntax.drawing.page import listing  # for notebooks alone

        rows = [
            (name, str(value.dtype), " × ".join(map(str, value.shape)))
            if isinstance(value, np.ndarray)
            else (name, type(value).__name__, str(len(value)) if hasattr(value, "__len__") else "")
            for name, value in self.items()
        ]
        return listing("Batch", ("name", "type", "shape"), rows)


def assemble_batch(
    examples: FlatExamples,
    special: SpecialTokens,
    spec: AssemblySpec,
    out: BatchBuffers | None = None,
) -> dict[str, NDArray[Any]]:
    """Frame, truncate, pad, and derive the matrices of B sequences, written into ``out`` if given.

    There is one sequence per example, in order, unless the template, windows or sentences of
    ``spec`` make several of one; those of an example then follow each other.

    Returns:
        Arrays padded to a common length L:

        * ``input_ids``, ``token_type_ids``: int64 (B, L), padded with ``pad_id`` and 0
        * ``attention_mask``: bool (B, L), true at real positions
        * ``special_tokens_mask``: bool (B, L), true at special tokens and padding
        * ``word_ids``, ``sentence_ids``: int32 (B, L), counted within each segment; -1 for none
        * ``segment_ids``: int32 (B, L), -1 at special tokens and padding
        * ``parents``: int32 (B, L), -1 at roots, isolated pieces and padding; a parent that was
          deleted is replaced by its nearest kept ancestor
        * ``upos``, ``deprel``: uint8 (B, L), 0 for none
        * ``lengths``: int32 (B,), real positions
        * of ``spec.matrices``: ``depth`` (B, L), ``distance`` and ``ancestor`` (B, L, L) as in
          `syntax.matrices.TreeMatrices`; others under the name they were asked by, padded as
          `syntax.matrices.MATRICES` says
        * with ``spec.offsets``: ``offset_mapping`` int32 (B, L, 2), characters of its segment's
          text that a piece covers, 0 and 0 for none; ``piece_ids`` int32 (B, L), counted within
          the segment as it is stored, -1 for none; ``shown_characters`` int32 (B, segments, 2),
          the part of each text that no removed piece covers
        * with ``spec.first_pieces``: ``first_pieces`` bool (B, L), true at first pieces of words
        * with ``spec.token_ids``: ``token_ids`` int32 (B, L), the first of its segment's own tokens
          that a piece shows, -1 for none; ``token_starts`` bool (B, L), true at the first piece of
          a token; ``token_words`` int32 (B, L, 2), at the first piece of a word its number among
          the words that begin in its token and how many these are, 0 and 0 elsewhere
        * with ``spec.nodes``: of all N nodes of the longest whole sequence, before truncation,
          ``node_parents``, ``node_source`` (the node whose row and column each shows),
          ``node_column`` (its position in the batch, -1 if it was deleted): int16 or int32 (B, N),
          padded with -1; ``node_special`` bool, ``node_upos`` and, of marked examples,
          ``node_marks`` uint8 (B, N)
        * with a template, windows or sentences: ``example_index``, ``choice_index`` and
          ``window_index`` int32 (B,): the example's position in ``examples``, the sequence's in the
          template, the window's among those of both
        * with windows or sentences: ``is_max_context`` bool (B, L), true at the one position
          where a piece has most context; false at special tokens and padding

        Matrices are those of the whole sequence with rows and columns deleted, so paths may run
        through deleted pieces. They are uint16 when a path of any whole sequence of the batch
        exceeds 254 edges.
    """
    buffers = BatchBuffers() if out is None else out
    frame = _frame(special, spec)
    sequences = plan_sequences(examples, frame, spec)
    nodes, node_offsets, lengths = _place(sequences, _piece_tree(sequences, spec.policy), frame)
    found = _order(sequences, nodes, node_offsets)
    forest = build_forest(found, node_offsets, nodes.source, nodes.column)
    width = round_up(int(lengths.max(initial=0)), spec.pad_to_multiple_of)
    batch = _gather(sequences.examples, special, nodes, forest, width, buffers)
    columns = node_columns(sequences.examples, nodes)
    return {
        **batch,
        "lengths": lengths,
        **_matrices(spec, forest, columns, width, buffers),
        **extra_columns(sequences, nodes, node_offsets, width, spec),
    }


def _matrices(
    spec: AssemblySpec, forest: Forest, columns: Columns, width: int, buffers: BatchBuffers
) -> dict[str, NDArray[Any]]:
    if not spec.matrices:
        return {}
    fused, others = _sorted_out(spec.matrices, tuple(MATRICES))
    return {
        **write_matrices(forest, width, fused, buffers),
        **{name: derive(name, forest, columns, width, buffers) for name in others},
    }


@lru_cache(maxsize=64)
def _sorted_out(
    wanted: tuple[str, ...],
    registered: tuple[str, ...],  # noqa: ARG001 - part of the key
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Wanted matrices that compiled passes make, and others; ``registered`` keys the cache."""
    names = {MATRICES.resolve(name): name for name in wanted}
    fused = tuple(name for name in COMPILED if f"{name}.v1" in names)
    others = (name for full, name in names.items() if full.removesuffix(".v1") not in COMPILED)
    return fused, tuple(others)


def _frame(special: SpecialTokens, spec: AssemblySpec) -> kernels.Frame:
    if spec.joint_root and not special.prefix:
        raise SpecError(
            "joint_root makes the first prefix token the root, but this tokenizer puts no token "
            "before the first segment; give `joint_root=False`"
        )
    return kernels.Frame(
        len(special.prefix),
        len(special.separator),
        len(special.suffix),
        spec.joint_root,
        _EDGE[spec.separator_edge],
    )


def _piece_tree(sequences: Sequences, policy: str) -> PieceTree:
    examples = sequences.examples
    flat = (examples.head, examples.segment_offsets, sequences.name)
    if policy.removesuffix(".v1") == "attach":  # hides none: `_order` finds it
        return attach(link_heads(*flat), examples.word_ids)
    return POLICIES[policy](order_heads(*flat).parents, examples.word_ids)


def _order(
    sequences: Sequences, nodes: kernels.Nodes, node_offsets: NDArray[np.int64]
) -> OrderedTrees:
    try:
        return order_heads(nodes.heads, node_offsets, lambda at: f"sequence {at} of the batch")
    except TreeError:
        examples = sequences.examples
        order_heads(examples.head, examples.segment_offsets, sequences.name)
        raise


def _place(
    sequences: Sequences, tree: PieceTree, frame: kernels.Frame
) -> tuple[kernels.Nodes, NDArray[np.int64], NDArray[np.int32]]:
    examples = sequences.examples
    special = frame.prefix + frame.suffix + frame.separator * (sequences.part_counts - 1)
    nodes = kernels.Nodes(*np.empty((6, len(tree.parents) + int(special.sum())), np.int32))
    node_offsets = np.empty(len(examples) + 1, np.int64)
    lengths = np.empty(len(examples), np.int32)
    kernels.place(
        tree.parents,
        tree.source,
        kernels.Segments(
            examples.segment_offsets, examples.example_offsets, sequences.joined, sequences.spans
        ),
        frame,
        nodes,
        node_offsets,
        lengths,
    )
    return nodes, node_offsets, lengths


def _gather(
    examples: FlatExamples,
    special: SpecialTokens,
    nodes: kernels.Nodes,
    forest: Forest,
    width: int,
    buffers: BatchBuffers,
) -> dict[str, NDArray[Any]]:
    shape = (len(examples), width)
    rows = kernels.Rows(
        **{name: buffers.take(name, shape, dtype) for name, dtype in _VECTORS.items()}
    )
    kernels.gather(
        nodes,
        forest.trees,
        kernels.Pieces(*(getattr(examples, name) for name in kernels.Pieces._fields)),
        np.array(special.prefix + special.separator + special.suffix, np.int64),
        np.array(special.segment_type_ids, np.int64),
        special.pad_id,
        rows,
    )
    return rows._asdict()


_VECTORS: Final[dict[str, type[np.generic]]] = {
    "input_ids": np.int64,
    "token_type_ids": np.int64,
    "attention_mask": np.bool_,
    "special_tokens_mask": np.bool_,
    "word_ids": np.int32,
    "segment_ids": np.int32,
    "sentence_ids": np.int32,
    "parents": np.int32,
    "upos": np.uint8,
    "deprel": np.uint8,
}
