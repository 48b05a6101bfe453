"""How stored segments become model input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from syntax.errors import SpecError
from syntax.matrices import MATRICES
from syntax.subwords import POLICIES

SeparatorEdge = Literal["root", "last_piece", "none"]
Truncation = Literal["longest_first", "only_first", "only_second", "none"]


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
            the last piece of the segment before them, kept or not (Syntax-MBERT as released, for
            pairs), the joint root if that segment is empty; ``none``: nothing.
        truncation: ``longest_first`` removes one piece at a time from the end of the longest
            segment, of equally long ones the last; ``only_first`` and ``only_second`` shorten one
            segment; ``none`` refuses what is too long. Matrices stay those of the whole tree:
            truncation deletes their rows and columns.
        pad_to_multiple_of: The padded length is a multiple of this. A multiple of 8 saves
            copying the matrices once.
        matrices: Names of `MATRICES`, with or without versions.

    Raises:
        SpecError: A limit is not positive, or an option is none of those above.
        UnknownNameError: The policy or a matrix is not registered.
    """

    max_length: int | None = None
    policy: str = "attach"
    joint_root: bool = True
    separator_edge: SeparatorEdge = "root"
    truncation: Truncation = "longest_first"
    pad_to_multiple_of: int = 1
    matrices: tuple[str, ...] = ("distance", "depth", "ancestor")

    def __post_init__(self) -> None:
        _check_positive("max_length", self.max_length)
        _check_positive("pad_to_multiple_of", self.pad_to_multiple_of)
        _check_option("separator_edge", self.separator_edge, get_args(SeparatorEdge))
        _check_option("truncation", self.truncation, get_args(Truncation))
        POLICIES.resolve(self.policy)
        for name in self.matrices:
            MATRICES.resolve(name)


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise SpecError(f"{name} is {value}; it must be at least 1")


def _check_option(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise SpecError(f"{name} is {value!r}; it must be one of {', '.join(options)}")
