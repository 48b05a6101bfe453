"""Forests on a device: nodes, their ancestors, and what of them a batch shows.

``N`` nodes are those of the longest sequence before truncation. The number of common ancestors of a
pair, a batched product of the ancestor relation with itself, gives its distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import torch
from torch import Tensor

from trainer.batch import UNREACHABLE

_EXACT_IN_BFLOAT16: Final = 256


@dataclass(frozen=True)
class DeviceForest:
    """Padded forests of whole sequences, and where the batch shows their nodes.

    Attributes:
        parents_BN: int64, -1 at roots and on padding.
        source_BN: int64, the node whose row and column each shows; its own place on padding.
        column_BN: int64, position in the batch, -1 for deleted nodes and padding.
        real_BN: bool, false on padding.
        upos_BN: uint8 ids of `syntax.trees.ud`.
        marked_BN: bool, true in the marked spans.
    """

    parents_BN: Tensor
    source_BN: Tensor
    column_BN: Tensor
    real_BN: Tensor
    special_BN: Tensor
    upos_BN: Tensor
    marked_BN: Tensor

    @classmethod
    def of(
        cls,
        parents: Tensor,
        source: Tensor,
        column: Tensor,
        special: Tensor,
        upos: Tensor,
        marks: Tensor | None = None,
    ) -> DeviceForest:
        """From the columns of nodes that a stream gives, padded with -1 (`AssemblySpec.nodes`)."""
        real_BN = source >= 0
        own_BN = torch.arange(source.shape[1], device=source.device).expand(source.shape)
        return cls(
            parents_BN=parents.long(),
            source_BN=torch.where(real_BN, source.long(), own_BN),
            column_BN=column.long(),
            real_BN=real_BN,
            special_BN=special,
            upos_BN=upos,
            marked_BN=torch.zeros_like(special) if marks is None else marks != 0,
        )

    @property
    def dtype(self) -> torch.dtype:
        """Of distances and depths: uint8 as long as no path can be longer, else int32."""
        short = self.parents_BN.shape[1] <= UNREACHABLE[torch.uint8]
        return torch.uint8 if short else torch.int32

    @cached_property
    def ancestor_BNN(self) -> Tensor:
        """``[i, j]``: j is i or an ancestor of i; false on padding. bool."""
        return ancestors(self.parents_BN, self.real_BN)

    @cached_property
    def depth_BN(self) -> Tensor:
        """Edges from the root; 0 on padding. int32."""
        return (self.ancestor_BNN.sum(-1, dtype=torch.int32) - 1).clamp(min=0)

    @cached_property
    def shared_BNN(self) -> Tensor:
        """Number of ancestors, selves included, that each pair shares. int32."""
        return shared_ancestors(self.ancestor_BNN)

    @cached_property
    def distance_BNN(self) -> Tensor:
        """Edges on the path; `UNREACHABLE` without one and on padding."""
        path_BNN = self.depth_BN[:, :, None] + self.depth_BN[:, None, :] - 2 * (self.shared_BNN - 1)
        far = UNREACHABLE[self.dtype]
        return path_BNN.masked_fill(self.shared_BNN == 0, far).to(self.dtype)

    def highest_below(self, values_BN: Tensor) -> Tensor:
        """The largest value among each node and all below it; -1 counts for none."""
        return self._below(values_BN, -1).amax(1)

    def lowest_below(self, values_BN: Tensor) -> Tensor:
        """The smallest value among each node and all below it that is not negative, else -1."""
        none = torch.iinfo(values_BN.dtype).max
        lowest_BN = self._below(values_BN.masked_fill(values_BN < 0, none), none).amin(1)
        return lowest_BN.masked_fill(lowest_BN == none, -1)

    def nearest_above(self, chosen_BN: Tensor) -> tuple[Tensor, Tensor]:
        """Depth and place of each node's nearest chosen ancestor, itself included; -1 for none."""
        ways_BNN = self.ancestor_BNN & chosen_BN[:, None, :]
        depth_BN, node_BN = torch.where(ways_BNN, self.depth_BN[:, None, :], -1).max(-1)
        return depth_BN, node_BN.masked_fill(depth_BN < 0, -1)

    def show(self, values: Tensor, width: int, padding: int | float) -> Tensor:
        """Rows, and columns, that the batch shows of values of all nodes."""
        B, N = self.parents_BN.shape
        # Nodes that the batch does not show go to a last column.
        column_BN = torch.where(self.column_BN < 0, width, self.column_BN)
        node_BL = self.source_BN.new_full((B, width + 1), -1)
        node_BL = node_BL.scatter(1, column_BN, self.source_BN)[:, :width]
        empty = node_BL < 0
        index = node_BL.clamp(min=0)
        if values.ndim == 2:
            return values.gather(1, index).masked_fill(empty, padding)
        rows_BLN = values.gather(1, index[:, :, None].expand(B, width, N))
        shown_BLL = rows_BLN.gather(2, index[:, None, :].expand(B, width, width))
        return shown_BLL.masked_fill(empty[:, :, None] | empty[:, None, :], padding)

    def _below(self, values_BN: Tensor, none: int) -> Tensor:
        return torch.where(self.ancestor_BNN, values_BN[:, :, None], none)


def ancestors(parents_BN: Tensor, real_BN: Tensor) -> Tensor:
    """Reflexive ancestor relation by pointer doubling; false on padding. *Shape:* (B, N, N)."""
    B, N = parents_BN.shape
    self_N = torch.arange(N, device=parents_BN.device)
    pointer_BN = torch.where(parents_BN < 0, self_N, parents_BN.long())
    ancestor_BNN = torch.diag_embed(real_BN)
    for _ in range((N - 1).bit_length()):
        rows_BNN = pointer_BN[:, :, None].expand(B, N, N)
        ancestor_BNN = ancestor_BNN | ancestor_BNN.gather(1, rows_BNN)
        pointer_BN = pointer_BN.gather(1, pointer_BN)
    return ancestor_BNN


def shared_ancestors(ancestor_BNN: Tensor) -> Tensor:
    """Ancestors, selves included, that each pair shares, int32; exact even in bfloat16."""
    half = ancestor_BNN.is_cuda and ancestor_BNN.shape[1] <= _EXACT_IN_BFLOAT16
    relation_BNN = ancestor_BNN.to(torch.bfloat16 if half else torch.float32)
    with torch.autocast(ancestor_BNN.device.type, enabled=False):
        return torch.bmm(relation_BNN, relation_BNN.transpose(1, 2)).to(torch.int32)
