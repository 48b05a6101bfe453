"""Auxiliary losses by name: what syntax states must be able to tell.

An objective is a module whose ``forward(states_BLG, batch)`` gives a scalar loss, averaged over
examples, blind to padding, whose states are finite but mean nothing. To add one, write the module
and add a line to `OBJECTIVES`; the contract test runs over the registry.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from syntax.registry import Registry
from trainer.objectives.structure import DepthProbe, DistanceProbe
from trainer.options import SyntaxBertOptions

OBJECTIVES: Registry[Callable[[SyntaxBertOptions], nn.Module]] = Registry("objective")
OBJECTIVES.add(
    "tree_distance.v1",
    lambda options: DistanceProbe(options.syntax_size, options.probe_rank, options.probe_target),
)
OBJECTIVES.add("tree_depth.v1", lambda options: DepthProbe(options.syntax_size, options.probe_rank))
