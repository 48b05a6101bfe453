"""An objective: a loss beside the task's, over what any encoder gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from syntax.errors import SpecError
from trainer.objectives import OBJECTIVES
from trainer.options.objective import ObjectiveOptions
from trainer.options.parser import MixedStates

if TYPE_CHECKING:
    from torch import Tensor

    from trainer.batch import SyntaxBatch
    from trainer.models.config import SyntaxConfig
    from trainer.models.outputs import SyntaxEncoding
    from trainer.nn.encoder import Encoder

States: TypeAlias = Literal["last", "syntax"] | int
"""States that an objective reads: the last, those of the graph encoder, or those of a layer, as
transformers counts ``hidden_states``: 0 for the embeddings."""


class Objective(Protocol):
    """A torch module that is built from its options, the model's configuration and the encoder.

    Its loss is a mean over examples and does not depend on padding, whose states are finite but
    mean nothing.
    """

    options: ObjectiveOptions

    needs: frozenset[str]
    """Demands on the encoder beside its last states: ``hidden_states``, ``attentions``,
    ``attention_rows``, ``syntax_states``."""

    def __init__(
        self, options: ObjectiveOptions, config: SyntaxConfig, encoder: Encoder
    ) -> None: ...

    def __call__(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor: ...


def build_objectives(
    options: Iterable[ObjectiveOptions], config: SyntaxConfig, encoder: Encoder
) -> Iterator[Objective]:
    use_syntax = config.model_options().use_syntax
    for one in options:
        if not one.is_active(use_syntax):
            continue
        kind: type[Objective] = resolve_name(OBJECTIVES[one.name].module)
        objective = kind(one, config, encoder)
        given = encoder.gives | ({"syntax_states"} if encoder.syntax_width is not None else set())
        if "attentions" in encoder.gives:
            given |= {"attention_rows"}  # and those any attention of ours gives
        if missing := sorted(objective.needs - given):
            raise SpecError(
                f"{one.name} reads {', '.join(missing)}, which {config.model['name']} does not "
                f"give; take {one.name} out of the recipe's objectives, or let it read other states"
            )
        if "attentions" in objective.needs and config.model_options().attention != "eager":
            raise SpecError(f"{one.name} reads attention weights; set model.attention=eager")
        yield objective


def weighted_sum(losses: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """The losses, each with its weight; losses of the same weight are added first, as in papers."""
    sums: dict[float, Tensor] = {}
    for name, loss in losses.items():
        weight = weights[name]
        sums[weight] = sums[weight] + loss if weight in sums else loss
    first, *others = (weight * found for weight, found in sums.items())
    return sum(others, first)


def needed_for(states: States) -> frozenset[str]:
    if isinstance(states, int):
        return frozenset({"hidden_states"})
    return frozenset({"syntax_states"} if states == "syntax" else ())


def width_of(encoder: Encoder, states: States) -> int:
    if states == "syntax":
        if encoder.syntax_width is None:
            raise SpecError(
                f"{type(encoder).__name__} has no syntax states; set the objective's `states` to "
                "last, or to the number of a layer"
            )
        return encoder.syntax_width
    if isinstance(states, int) and encoder.stock is not None:
        return int(encoder.stock.config.hidden_size)
    return encoder.width


def chosen(encoding: SyntaxEncoding, states: States) -> Tensor:
    """The states that an objective reads. *Shape:* (B, L, D)."""
    if isinstance(states, int):
        assert encoding.hidden_states is not None
        return encoding.hidden_states[states]
    found = encoding.syntax_states if states == "syntax" else encoding.last_hidden_state
    assert found is not None
    return found


def needed_for_mix(states: MixedStates) -> frozenset[str]:
    return frozenset() if states == "last" else frozenset({"hidden_states"})
