"""A system, and the registry of all systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from syntax.registry import Registry
from syntax.variant import Switch
from trainer.options.model import ModelOptions

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class System:
    """A model of a published system, in a folder of its own.

    Whatever needs torch is named, as ``module:name``, and imported when it is used, so that systems
    and their recipes can be listed without torch. ``encoder`` is a `trainer.nn.encoder.Encoder`;
    ``relations`` are functions of a `trainer.matrices.forest.DeviceForest`, by matrix.
    """

    options: type[ModelOptions]
    encoder: str
    recipes: str
    switches: tuple[Switch, ...] = ()
    relations: str | None = None

    def load_encoder(self) -> type[Any]:
        found: type[Any] = resolve_name(self.encoder)
        return found

    def load_relations(self) -> Mapping[str, Callable[..., Tensor]]:
        return {} if self.relations is None else resolve_name(self.relations)


SYSTEMS: Final[Registry[System]] = Registry("model")
"""Every system by the versioned name of its model."""
