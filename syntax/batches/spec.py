"""How stored segments become model input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from syntax.batches.template import Template
from syntax.errors import SpecError
from syntax.matrices import MATRICES
from syntax.subwords import POLICIES

SeparatorEdge = Literal["root", "last_piece", "none"]
Truncation = Literal["longest_first", "only_first", "only_second", "none"]
TruncationTie = Literal["fast", "slow"]
TruncationSide = Literal["right", "left"]
Level = Literal["document", "sentence"]


@dataclass(frozen=True, slots=True)
class AssemblySpec:
    """Everything that is decided when a batch is made, none of which is stored.

    Attributes:
        max_length: Pieces of a sequence, special tokens included; ``None``: no limit.
        policy: Subword policy, a name of `POLICIES` with or without its version.
        joint_root: The first prefix token (``[CLS]``) is the root of everything: sentence roots
            and other prefix tokens hang from it. Otherwise every sentence is a tree of its own.
        separator_edge: What separators and the suffix hang from. ``root``: the joint root, if
            there is one (Syntax-MBERT as published: Ahmad et al. 2021, section 3); ``last_piece``:
            in sequences of several parts, the last piece of the segment before them, kept or not
            (Syntax-MBERT as released), and otherwise, or if that segment is empty, the joint
            root; ``none``: nothing.
        truncation: ``longest_first`` removes one piece at a time from the longest segment;
            ``only_first`` and ``only_second`` shorten one segment; ``none`` refuses what is too
            long. Matrices stay those of the whole tree: truncation deletes their rows and columns.
        pad_to_multiple_of: The padded length is a multiple of this. A multiple of 8 saves
            copying the matrices once.
        matrices: Names of `MATRICES`, with or without versions, settings in brackets:
            ``sla_mask(threshold=4)``.
        truncation_tie: Which of equally long segments ``longest_first`` shortens. ``fast``: the
            one that was the shortest before, of those the first, as Hugging Face's fast
            tokenizers (the library ``tokenizers``) do; ``slow``: the last one, as BERT's own code
            and the tokenizers in Python do. The two differ by one piece of each of two segments.
        truncation_side: Where pieces are removed: ``right``, the end of a text in any script, or
            ``left``, its beginning; one for all segments, or one for each.
        segment_limits: Pieces that each segment keeps at most, before anything else is cut; one
            limit for each, ``None`` for none.
        template: Which segments stand where, and in how many sequences; ``None``: all of them in
            order, in one. What is said of segments above then holds for the template's parts.
        stride: Pieces from the start of one window to the start of the next: an example that is
            too long becomes several sequences, in which the segment that ``truncation`` names (or
            the only one) goes on where the others stay. Never more than fit into a window, so
            that no piece is left out. ``None`` truncates instead.
        level: ``sentence`` makes a sequence of every sentence of that segment, with the others.
        offsets: Whether batches tell which characters and pieces of a text are where.
        first_pieces: Whether batches tell which pieces are the first of their words.
        token_ids: Whether batches tell which of the dataset's own tokens pieces show.
        nodes: Whether batches tell the nodes of the whole sequences, before truncation, from
            which a device can derive the matrices.

    Raises:
        SpecError: A limit is not positive, or an option is none of those above, a matrix is named
            twice, or windows are asked for without a length or a segment to cut.
        UnknownNameError: The policy or a matrix is not registered.
    """

    max_length: int | None = None
    policy: str = "attach"
    joint_root: bool = True
    separator_edge: SeparatorEdge = "root"
    truncation: Truncation = "longest_first"
    pad_to_multiple_of: int = 1
    matrices: tuple[str, ...] = ("distance", "depth", "ancestor")
    truncation_side: TruncationSide | tuple[TruncationSide, ...] = "right"
    segment_limits: tuple[int | None, ...] = ()
    template: Template | None = None
    stride: int | None = None
    level: Level = "document"
    offsets: bool = False
    first_pieces: bool = False
    token_ids: bool = False
    nodes: bool = False
    truncation_tie: TruncationTie = "fast"

    def __post_init__(self) -> None:
        _check_positive("max_length", self.max_length)
        _check_positive("pad_to_multiple_of", self.pad_to_multiple_of)
        _check_option("separator_edge", self.separator_edge, get_args(SeparatorEdge))
        _check_option("truncation", self.truncation, get_args(Truncation))
        _check_option("truncation_tie", self.truncation_tie, get_args(TruncationTie))
        _check_option("level", self.level, get_args(Level))
        if not self.sides:
            raise SpecError("truncation_side is empty; give a side for all segments, or each")
        for side in self.sides:
            _check_option("truncation_side", side, get_args(TruncationSide))
        for limit in self.segment_limits:
            _check_positive("a segment limit", limit)
        _check_windows(self)
        POLICIES.resolve(self.policy)
        _check_matrices(self.matrices)

    @property
    def sides(self) -> tuple[TruncationSide, ...]:
        """The side of each segment; one stands for all."""
        return (
            (self.truncation_side,)
            if isinstance(self.truncation_side, str)
            else self.truncation_side
        )

    @property
    def splits(self) -> bool:
        """Whether one segment of an example may be spread over several sequences."""
        return self.stride is not None or self.level == "sentence"


def _check_windows(spec: AssemblySpec) -> None:
    _check_positive("stride", spec.stride)
    if spec.stride is not None and spec.max_length is None:
        raise SpecError(f"stride {spec.stride} came without max_length, which windows fill")
    if spec.splits and spec.truncation == "none":
        raise SpecError(
            "truncation 'none' cuts nothing; with stride or level 'sentence' it must name the "
            "segment that is spread over sequences: only_first or only_second"
        )


def _check_matrices(names: tuple[str, ...]) -> None:
    full = [MATRICES.resolve(name) for name in names]
    for at, name in enumerate(full):
        if name in full[:at]:
            raise SpecError(
                f"the matrices {names[full.index(name)]!r} and {names[at]!r} are the same, "
                f"{name}; name it once"
            )


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise SpecError(f"{name} is {value}; it must be at least 1")


def _check_option(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise SpecError(f"{name} is {value!r}; it must be one of {', '.join(options)}")
