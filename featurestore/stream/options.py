"""Options of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeVar

from featurestore.stream.order import OrderPolicy
from syntax.batches import MAX_LENGTH, AssemblySpec, Span
from syntax.contrast import Sampler
from syntax.errors import SpecError
from syntax.options import Option, check_options, options_of
from syntax.registry import unknown_name

STORED: Final = "stored"

DEFAULTS: Final[Mapping[str, Any]] = {
    **{name: option.default for name, option in options_of(OrderPolicy).items()},
    **{name: option.default for name, option in options_of(AssemblySpec).items()},
    "max_length": MAX_LENGTH,
}

DAILY: Final = frozenset(
    {
        *("batch_size", "seed", "epoch", "shuffle", "bucket"),
        *("max_length", "policy", "matrices"),
    }
)
"""Options of order and assembly that are keywords of a stream, too."""

T = TypeVar("T", OrderPolicy, AssemblySpec)


@dataclass(frozen=True)
class StreamOptions:
    """Options of one stream: the order of its examples, what batches are made of, who reads them.

    Attributes:
        order: Choice of the examples of each batch.
        assembly: Choice of the arrays; without matrices if ``stored``.
        stored: Read the stored matrices instead of deriving them.
    """

    order: OrderPolicy
    assembly: AssemblySpec
    stored: bool = False
    rank: Annotated[int, Option("Rank of this process, from 0.", low=0)] = 0
    world_size: Annotated[
        int,
        Option(
            "Number of ranks. They take turns over one global sequence of batches: every rank "
            "gets the same number of batches, none larger than asked, and no example is lost or "
            "repeated.",
            low=1,
        ),
    ] = 1
    buffers: Annotated[
        Literal["fresh", "ring"],
        Option(
            "`fresh` arrays for every batch, or a `ring` of reused arrays: then a batch is valid "
            "only until the next."
        ),
    ] = "fresh"
    prefetch: Annotated[int, Option("Batches that a thread prepares ahead; 0 for none.", low=0)] = 0
    spans: Annotated[
        Mapping[str, Sequence[Span]] | tuple[str, ...] | None,
        Option(
            "Spans of characters by `example_id`, or names of label columns of kind `spans`, for "
            "matrices that use marks (`syntax.batches.mark_spans`)."
        ),
    ] = None
    samplers: Annotated[
        tuple[Sampler, ...],
        Option(
            "Contrastive samples to draw for each example (`syntax.contrast`), from `seed`, "
            "`epoch` and `example_id`; the batch gets their arrays. One sampler of each kind."
        ),
    ] = ()

    def __post_init__(self) -> None:
        check_options(self)
        if self.rank >= self.world_size:
            raise SpecError(f"rank {self.rank} is not one of {self.world_size} ranks, from 0")
        if self.order.batch_tokens is not None and self.assembly.rearranges:
            raise SpecError(
                "batch_tokens counts one sequence per example, of all its segments; with a "
                "template, stride or level 'sentence', give batch_size"
            )

    @property
    def reads_offsets(self) -> bool:
        return self.assembly.offsets or self.assembly.token_ids or self.spans is not None

    def identity(self) -> dict[str, Any]:
        """The values that two streams must share for a position to mean the same in both."""
        buckets = list(self.order.buckets)  # as JSON gives them back
        return {**asdict(self.order), "buckets": buckets, "max_length": self.assembly.max_length}


def read_options(
    given: Mapping[str, Any],
    assembly: AssemblySpec | None = None,
    order: OrderPolicy | None = None,
) -> StreamOptions:
    """The options of a stream from keywords and two objects; a default yields to another value."""
    own = options_of(StreamOptions)
    for name in given:
        if name not in own and name not in DAILY:
            raise unknown_name("option of a stream", name, {*own, *DAILY, "assembly", "order"})
    values = {"max_length": MAX_LENGTH, **given}
    stored = isinstance(values.get("matrices"), str) and values["matrices"] == STORED
    if stored:
        values["matrices"] = ()
    return StreamOptions(
        _joined("order", order or OrderPolicy(), values),
        _joined("assembly", assembly or AssemblySpec(), values),
        stored,
        **{name: values[name] for name in own if name in values},
    )


def _joined(name: str, held: T, values: Mapping[str, Any]) -> T:
    """An object in which keywords replace the options that are at their default."""
    changes = {}
    for option, field in options_of(type(held)).items():
        if option in values:
            said, here = field.checked(option, values[option]), getattr(held, option)
            if here == field.default:
                if said != here:
                    changes[option] = said
            elif said not in (here, DEFAULTS[option]):
                raise SpecError(
                    f"{option} is {said!r}, and {here!r} in `{name}`; give it in one of the two"
                )
    return replace(held, **changes) if changes else held
