"""One batch, from the stream's NumPy arrays to a model's ``forward``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from syntax.errors import SpecError
from syntax.matrices import MATRICES

UNREACHABLE = {torch.uint8: 255, torch.int32: 65535}
"""The distance that means "no path", by dtype; padding carries it too."""

_WITH_TREES = ("special_tokens_mask", "upos", "deprel")

_FROM_STREAM = {
    "input_ids_BL": "input_ids",
    "attention_mask_BL": "attention_mask",
    "token_type_ids_BL": "token_type_ids",
    "special_tokens_mask_BL": "special_tokens_mask",
    "upos_BL": "upos",
    "deprel_BL": "deprel",
    "parents_BL": "parents",
    "lengths_B": "lengths",
    "depth_BL": "depth",
    "distance_BLL": "distance",
    "ancestor_BLL": "ancestor",
}
_OPTIONAL = frozenset({"depth_BL", "distance_BLL", "ancestor_BLL"})
_OF_TREES = frozenset({"parents", "depth", "distance", "ancestor", *_WITH_TREES})


@dataclass(frozen=True, slots=True)
class SyntaxBatch:
    """Padded examples with their trees.

    Small integers stay small until they are used, because every byte crosses the bus to the device.
    A stream may leave matrices out (see `trainer.matrices.derive`).

    Attributes:
        attention_mask_BL: bool, true on real positions.
        special_tokens_mask_BL: bool, true on [CLS], [SEP] and their like.
        upos_BL, deprel_BL: uint8 ids of `syntax.trees.ud`, 0 on specials and padding.
        parents_BL: int32, -1 at roots, isolated pieces and padding.
        depth_BL: uint8 or int32, edges from the root; 0 on padding.
        distance_BLL: uint8 or int32, edges on the path; `unreachable` without one.
        ancestor_BLL: bool, ``[i, j]``: j is i or an ancestor of i.
        labels: Targets of the task's head by name, such as class ids, (B,), or labels of pieces.
        extras: Further arrays of the stream, such as ``sla_mask(threshold=4)`` and samples.
        arrays: The stream's own; they stay on the host, where predictions are scored.
        stream: Name of the stream of the run; a model has a head and objectives for each.
    """

    input_ids_BL: Tensor
    attention_mask_BL: Tensor
    token_type_ids_BL: Tensor
    special_tokens_mask_BL: Tensor
    upos_BL: Tensor
    deprel_BL: Tensor
    parents_BL: Tensor
    lengths_B: Tensor
    depth_BL: Tensor | None
    distance_BLL: Tensor | None
    ancestor_BLL: Tensor | None
    labels: Mapping[str, Tensor]
    example_ids: tuple[str, ...]
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    arrays: Mapping[str, Any] = field(default_factory=dict)
    stream: str = "main"  # trainer.options.MAIN, which lies above batches

    def __post_init__(self) -> None:
        B, L = self.input_ids_BL.shape
        expected = {"BLL": (B, L, L), "BL": (B, L), "B": (B,)}
        for name in _FROM_STREAM:
            tensor = getattr(self, name)
            if tensor is not None and tuple(tensor.shape) != expected[name.rpartition("_")[2]]:
                raise SpecError(
                    f"{name} has shape {tuple(tensor.shape)}, but {B} examples of {L} pieces came"
                )
        # Matrices have a row per sequence; what else is carried may be of any shape.
        for name, tensor in self.extras.items():
            if name in MATRICES and tuple(tensor.shape) not in ((B, L), (B, L, L)):
                raise SpecError(
                    f"{name} has shape {tuple(tensor.shape)}, but {B} examples of {L} pieces came"
                )

    @classmethod
    def from_numpy(
        cls,
        arrays: Mapping[str, Any],
        labels: Mapping[str, Any] | Sequence[str] = (),
        extras: Sequence[str] = (),
        stream: str = "main",
    ) -> SyntaxBatch:
        """Wrap what a stream yields; arrays are shared, not copied, where possible."""
        for name in set(extras) - set(arrays):
            raise SpecError(f"the stream gave no {name!r}, only {', '.join(arrays)}")
        if not isinstance(labels, Mapping):
            labels = {name: arrays[name] for name in labels}
        tensors: dict[str, Any] = {
            name: None if key not in arrays and name in _OPTIONAL else _tensor(arrays[key])
            for name, key in _FROM_STREAM.items()
        }
        return cls(
            **tensors,
            labels={name: _tensor(array) for name, array in labels.items()},
            example_ids=tuple(arrays.get("example_id", ())),
            extras={name: _tensor(arrays[name]) for name in extras},
            arrays=arrays,
            stream=stream,
        )

    @classmethod
    def from_tensors(
        cls,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        labels: Mapping[str, Tensor],
        **arrays: Tensor,
    ) -> SyntaxBatch:
        """A batch from tensors, as other libraries hand them to a model.

        ``attention_mask`` is true, or not 0, on real positions. Trees in ``arrays`` go by the names
        that a stream gives them; other names become extras. Without trees all pieces are isolated.
        """
        present = [name for name in arrays if name in _OF_TREES]
        missing = [name for name in _WITH_TREES if name not in arrays]
        if present and missing:
            raise SpecError(
                f"the batch has {', '.join(present)} and no {', '.join(missing)}; give the tags "
                "and special tokens with the trees"
            )
        mask_BL = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        none_BL = torch.zeros_like(input_ids)
        tensors: dict[str, Any] = {
            "input_ids": input_ids,
            "attention_mask": mask_BL != 0,
            "token_type_ids": none_BL if token_type_ids is None else token_type_ids,
            "special_tokens_mask": none_BL,
            "upos": none_BL,
            "deprel": none_BL,
            "parents": none_BL - 1,
            "lengths": (mask_BL != 0).sum(1),
            **arrays,
        }
        tensors["special_tokens_mask"] = tensors["special_tokens_mask"] != 0
        known = {name: tensors.pop(key, None) for name, key in _FROM_STREAM.items()}
        return cls(**known, labels=labels, example_ids=(), extras=tensors)

    def tensors(self) -> dict[str, Any]:
        """The tensors by the names that `from_tensors` takes; ``labels`` is a mapping."""
        known = {key: getattr(self, name) for name, key in _FROM_STREAM.items()}
        present = {key: tensor for key, tensor in known.items() if tensor is not None}
        return {**present, **self.extras, "labels": dict(self.labels)}

    def __len__(self) -> int:
        return int(self.input_ids_BL.shape[0])

    @property
    def unreachable(self) -> int:
        return UNREACHABLE[self.distances().dtype]

    @property
    def reachable_BLL(self) -> Tensor:
        return self.distances() != self.unreachable

    def distances(self) -> Tensor:
        """``distance_BLL``; refuses a batch without it."""
        return _required("distance", self.distance_BLL)

    def depths(self) -> Tensor:
        return _required("depth", self.depth_BL)

    def extra(self, name: str) -> Tensor:
        return _required(name, self.extras.get(name))

    def pin_memory(self) -> SyntaxBatch:
        return self.map(Tensor.pin_memory)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> SyntaxBatch:
        return self.map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def map(self, change: Callable[[Tensor], Tensor]) -> SyntaxBatch:
        """The same batch with every tensor changed, always in the same order."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {
            name: change(value) for name, value in values.items() if isinstance(value, Tensor)
        }
        labels = {name: change(value) for name, value in self.labels.items()}
        extras = {name: change(value) for name, value in self.extras.items()}
        return replace(self, **changed, labels=labels, extras=extras)


def _required(matrix: str, tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise SpecError(
            f"this batch carries no {matrix}; stream it, with {matrix!r} among its `matrices=`, or "
            "derive it on the device (trainer.matrices.derive)"
        )
    return tensor


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    # torch has almost no arithmetic for uint16, and warns about memory it may not write to.
    if array.dtype == np.uint16:
        array = array.astype(np.int32)
    return torch.from_numpy(np.require(array, requirements="W"))


EXTRA_TAGS: Final = 3
"""Ids after UD's own: the joint root ([CLS]), other specials ([SEP]), a piece without a tag."""


def tag_ids(batch: SyntaxBatch, ids_BL: Tensor, size: int) -> Tensor:
    """Tags, where specials and untagged pieces have ids of their own from ``size`` on.

    Id 0 stays for padding alone, as in the release of Syntax-MBERT (there: [CLS], [SEP] and
    [UNK]). *Shape:* (B, L), int64.
    """
    special_BL = batch.special_tokens_mask_BL & batch.attention_mask_BL
    untagged_BL = (ids_BL == 0) & batch.attention_mask_BL
    ids_BL = ids_BL.long().masked_fill(untagged_BL, size + 2).masked_fill(special_BL, size + 1)
    first_BL = torch.zeros_like(special_BL)
    first_BL[:, 0] = special_BL[:, 0]
    return ids_BL.masked_fill(first_BL, size)
