"""Distance, depth and ancestors without compiled code: what the kernels are compared with.

Each goes from the parents of any forest to (distance, depth, ancestor), 255 where no path is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Parents = NDArray[np.int32]


def networkx_distance(parents: Parents) -> NDArray[np.uint8]:
    """Breadth-first search from every node."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(parents)))
    graph.add_edges_from((at, above) for at, above in enumerate(parents.tolist()) if above >= 0)
    distance = np.full((len(parents), len(parents)), 255, np.uint8)
    for start, steps in nx.all_pairs_shortest_path_length(graph):
        distance[start, list(steps)] = list(steps.values())
    return distance


def numpy_rows(parents: Parents) -> tuple[NDArray[Any], ...]:
    """The kernel's own way, row by row, as plain numpy."""
    above = parents.tolist()
    depth, root, order = _order(above)
    depths = np.array(depth, np.uint8)
    subtree = np.eye(len(above), dtype=np.uint8)
    for node in reversed(order):
        if above[node] >= 0:
            subtree[above[node]] |= subtree[node]
    distance = np.empty_like(subtree)
    ancestor = np.eye(len(above), dtype=np.bool_)
    step = subtree[root] - 2 * subtree
    for node in order:
        if above[node] < 0:
            distance[node] = np.where(subtree[node], depths, 255)
        else:
            distance[node] = distance[above[node]] + step[node]
            ancestor[node] |= ancestor[above[node]]
    return distance, depths, ancestor


def _order(above: list[int]) -> tuple[list[int], list[int], list[int]]:
    depth, root, order = [-1] * len(above), [-1] * len(above), []
    for node in range(len(above)):
        path, at = [], node
        while at >= 0 and depth[at] < 0:
            path.append(at)
            at = above[at]
        level = depth[at] if at >= 0 else -1
        top = root[at] if at >= 0 else path[-1]
        while path:
            at = path.pop()
            level += 1
            depth[at] = level
            root[at] = top
            order.append(at)
    return depth, root, order


def numpy_levels(parents: Parents) -> tuple[NDArray[Any], ...]:
    """All rows of one depth at once, from the roots downwards."""
    depth, root, _ = _order(parents.tolist())
    depths = np.array(depth, np.uint8)
    order = np.argsort(depths, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    above, top = place[parents[order]], place[root][order]
    bounds = np.cumsum(np.bincount(depths)).tolist()
    ancestor_by_depth = np.zeros((len(order), len(order)), np.bool_)
    ancestor_by_depth[np.arange(len(order)), order] = True
    for first, end in pairwise(bounds):
        ancestor_by_depth[first:end] |= ancestor_by_depth[above[first:end]]
    ancestor = np.empty_like(ancestor_by_depth)
    ancestor[order] = ancestor_by_depth
    subtree = ancestor.T[order].view(np.uint8)
    step = subtree[top] - 2 * subtree
    by_depth = np.empty_like(subtree)
    by_depth[: bounds[0]] = np.where(subtree[: bounds[0]], depths, 255)
    for first, end in pairwise(bounds):
        np.add(by_depth[above[first:end]], step[first:end], out=by_depth[first:end])
    distance = np.empty_like(by_depth)
    distance[order] = by_depth
    return distance, depths, ancestor


def numpy_doubling(parents: Parents) -> tuple[NDArray[Any], ...]:
    """Ancestors by doubling pointers, common ancestors by a matrix product."""
    ancestor = np.eye(len(parents), dtype=np.bool_)
    above = parents.copy()
    while len(live := np.flatnonzero(above >= 0)):
        ancestor[live] |= ancestor[above[live]]
        above[live] = above[above[live]]
    numbers = ancestor.astype(np.float32)
    shared = (numbers @ numbers.T).astype(np.uint8)
    own = shared.diagonal()
    distance = own[:, None] + own
    distance -= shared
    distance -= shared
    distance[shared == 0] = 255
    return distance, own - np.uint8(1), ancestor


NUMPY = (numpy_rows, numpy_levels, numpy_doubling)
