"""What a stream is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from featurestore.checks import flag, items, names, one_of, optional, text, whole_number
from featurestore.stream.order import OrderPolicy
from syntax.batches import (
    AssemblySpec,
    Level,
    SeparatorEdge,
    Span,
    Template,
    Truncation,
    TruncationSide,
    TruncationTie,
)
from syntax.contrast import Sampler
from syntax.errors import SpecError

STORED: Final = "stored"


@dataclass(frozen=True)
class StreamOptions:
    """Options of one stream; `StreamedDataset.stream` describes each.

    Raises:
        SpecError: Options contradict each other.
    """

    batch_size: int
    batch_tokens: int | None
    seed: int
    epoch: int
    rank: int
    world_size: int
    max_length: int | None
    policy: str
    shuffle: bool
    bucket: bool
    matrices: tuple[str, ...] | Literal["stored"]
    buffers: Literal["fresh", "ring"]
    drop_last: bool
    prefetch: int
    pool: int | None
    joint_root: bool
    separator_edge: SeparatorEdge
    truncation: Truncation
    pad_to_multiple_of: int
    truncation_side: TruncationSide | tuple[TruncationSide, ...]
    segment_limits: tuple[int | None, ...]
    template: tuple[str, ...]
    stride: int | None
    level: Level
    offsets: bool
    first_pieces: bool
    token_ids: bool
    nodes: bool
    spans: Mapping[str, Sequence[Span]] | tuple[str, ...] | None
    samplers: tuple[Sampler, ...]
    truncation_tie: TruncationTie

    @classmethod
    def of(cls, **given: Any) -> StreamOptions:
        """The options as callers give them: lists and NumPy's numbers too.

        Raises:
            SpecError: A value is of another type than its option, or options contradict each other.
        """
        return cls(**{name: _CHECKS[name](name, value) for name, value in given.items()})

    def __post_init__(self) -> None:
        _ = self.order  # refuses sizes that are not positive
        if not 0 <= self.rank < self.world_size:
            raise SpecError(f"rank {self.rank} is not one of {self.world_size} ranks, from 0")
        if self.prefetch < 0:
            raise SpecError(f"prefetch is {self.prefetch}; give 0 for none")
        one_of("buffers", self.buffers, ("fresh", "ring"))
        if self.batch_tokens is not None and self.rearranges:
            raise SpecError(
                "batch_tokens counts one sequence per example, of all its segments; with a "
                "template, stride or level 'sentence', give batch_size"
            )

    @property
    def reads_offsets(self) -> bool:
        """Whether the characters of pieces are needed."""
        return self.offsets or self.token_ids or self.spans is not None

    @property
    def rearranges(self) -> bool:
        """Whether a sequence may be other than all segments of an example, in order."""
        return bool(self.template) or self.stride is not None or self.level != "document"

    @property
    def order(self) -> OrderPolicy:
        """The part that the order depends on."""
        return OrderPolicy(
            batch_size=self.batch_size,
            batch_tokens=self.batch_tokens,
            seed=self.seed,
            epoch=self.epoch,
            shuffle=self.shuffle,
            bucket=self.bucket,
            pool=self.pool,
        )

    def assembly(self, fields: tuple[str, ...]) -> AssemblySpec:
        """The part that the arrays depend on.

        Args:
            fields: Names of the segments of an example.
        """
        return AssemblySpec(
            max_length=self.max_length,
            policy=self.policy,
            joint_root=self.joint_root,
            separator_edge=self.separator_edge,
            truncation=self.truncation,
            pad_to_multiple_of=self.pad_to_multiple_of,
            matrices=() if self.matrices == STORED else self.matrices,
            truncation_side=self.truncation_side,
            segment_limits=self.segment_limits,
            template=Template.of(fields, *self.template) if self.template else None,
            stride=self.stride,
            level=self.level,
            offsets=self.offsets,
            first_pieces=self.first_pieces,
            token_ids=self.token_ids,
            nodes=self.nodes,
            truncation_tie=self.truncation_tie,
        )

    def identity(self) -> dict[str, Any]:
        """What must be equal for a position in one stream to mean the same in another."""
        return {**asdict(self.order), "max_length": self.max_length, "drop_last": self.drop_last}


def _matrices(name: str, value: Any) -> tuple[str, ...] | str:
    return STORED if isinstance(value, str) and value == STORED else names(name, value)


def _one_or_several(name: str, value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else names(name, value)


def _sides(name: str, value: Any) -> tuple[str, ...] | str:
    return value if isinstance(value, str) else names(name, value)


def _limits(name: str, value: Any) -> tuple[int | None, ...]:
    return tuple(optional(whole_number)(f"one of {name}", one) for one in items(name, value))


def _spans(name: str, value: Any) -> Mapping[str, Sequence[Span]] | tuple[str, ...]:
    return value if isinstance(value, Mapping) else names(name, value)


def _samplers(name: str, value: Any) -> tuple[Sampler, ...]:
    for one in items(name, value):
        if not callable(getattr(one, "sample", None)):
            raise SpecError(f"one of {name} is {one!r}; it must be a sampler of syntax.contrast")
    return tuple(value)


_CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    **dict.fromkeys(("batch_size", "seed", "epoch", "rank", "world_size"), whole_number),
    **dict.fromkeys(("prefetch", "pad_to_multiple_of"), whole_number),
    **dict.fromkeys(("batch_tokens", "max_length", "pool", "stride"), optional(whole_number)),
    **dict.fromkeys(("shuffle", "bucket", "drop_last", "joint_root", "nodes"), flag),
    **dict.fromkeys(("offsets", "first_pieces", "token_ids"), flag),
    **dict.fromkeys(("policy", "buffers", "separator_edge", "level"), text),
    **dict.fromkeys(("truncation", "truncation_tie"), text),
    "matrices": _matrices,
    "truncation_side": _sides,
    "segment_limits": _limits,
    "template": _one_or_several,
    "spans": optional(_spans),
    "samplers": _samplers,
}
"""What each option must be."""
