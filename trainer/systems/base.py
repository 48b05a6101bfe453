"""A system, and the registry of all systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from syntax.registry import Registry
from trainer.options.model import ModelOptions
from trainer.switches import Switch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class System:
    """A model of a published system, in a folder of its own.

    Whatever needs torch is named here, as ``module:name``, and imported when it is used: systems
    and their recipes can be listed without torch.

    Attributes:
        options: The options of the model; their ``name`` is the system's.
        encoder: The encoder, a `trainer.nn.encoder.Encoder`.
        recipes: The module that registers the system's recipes.
        switches: Where paper and release differ.
        relations: The system's own matrices on the device, functions of a
            `trainer.matrices.forest.DeviceForest` by the name of the matrix.
    """

    options: type[ModelOptions]
    encoder: str
    recipes: str
    switches: tuple[Switch, ...] = ()
    relations: str | None = None

    def load_encoder(self) -> type[Any]:
        """The class of the encoder, a `trainer.nn.encoder.Encoder`."""
        found: type[Any] = resolve_name(self.encoder)
        return found

    def load_relations(self) -> Mapping[str, Callable[..., Tensor]]:
        """The matrices that can be derived on the device: functions of a `DeviceForest`."""
        return {} if self.relations is None else resolve_name(self.relations)


SYSTEMS: Final[Registry[System]] = Registry("model")
"""Every system by the versioned name of its model."""
