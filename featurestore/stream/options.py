"""What a stream is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from featurestore.stream.order import OrderPolicy
from syntax.assembly import AssemblySpec, Span, Template
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
    separator_edge: Literal["root", "last_piece", "none"]
    truncation: Literal["longest_first", "only_first", "only_second", "none"]
    pad_to_multiple_of: int
    truncation_side: Literal["right", "left"] | tuple[Literal["right", "left"], ...] = "right"
    segment_limits: tuple[int | None, ...] = ()
    template: tuple[str, ...] = ()
    stride: int | None = None
    level: Literal["document", "sentence"] = "document"
    offsets: bool = False
    first_pieces: bool = False
    token_ids: bool = False
    nodes: bool = False
    spans: Mapping[str, Sequence[Span]] | tuple[str, ...] | None = None
    samplers: tuple[Sampler, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise SpecError(f"rank {self.rank} is not one of {self.world_size} ranks, from 0")
        if self.prefetch < 0:
            raise SpecError(f"prefetch is {self.prefetch}; give 0 for none")
        if self.buffers not in ("fresh", "ring"):
            raise SpecError(f"buffers is {self.buffers!r}; choose 'fresh' or 'ring'")
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
        )

    def identity(self) -> dict[str, Any]:
        """What must be equal for a position in one stream to mean the same in another."""
        return {**asdict(self.order), "max_length": self.max_length, "drop_last": self.drop_last}
