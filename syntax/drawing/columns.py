"""Nodes side by side in the order of the text, as every picture of a sentence places them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from syntax.drawing.graph import Edge, Graph
from syntax.drawing.svg import FONT, SMALL, about, element, escaped, line, text, width_of

GAP = 14.0

SPAN_FONT = 13.0

LABEL_ROOM = 22.0
"""Room of an arc beside its label: its corners, in pixels."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Centres and half the widths of nodes, and the width of the picture, in pixels."""

    centres: tuple[float, ...]
    halves: tuple[float, ...]
    width: float


def place_columns(graph: Graph, below: Sequence[str], edges: Sequence[Edge] = ()) -> Columns:
    """Place each node as near to its neighbour as texts and labels of ``edges`` allow."""
    pairs = zip(graph.nodes, below, strict=True)
    widths = [max(width_of(node.form), width_of(small, SMALL), SMALL) for node, small in pairs]
    for span in graph.spans:
        share = width_of(span.form, SPAN_FONT) / (span.last - span.first + 1)
        for at in range(span.first, span.last + 1):
            widths[at] = max(widths[at], share)
    starting: dict[int, list[tuple[int, float]]] = {}
    for edge in edges:
        wide = width_of(edge.label, SMALL)
        if edge.head < 0:
            widths[edge.dependent] = max(widths[edge.dependent], wide)
        else:
            first, last = sorted((edge.head, edge.dependent))
            starting.setdefault(last, []).append((first, wide + LABEL_ROOM))
    return _placed([width / 2 for width in widths], starting, graph.right_to_left)


def _placed(
    halves: list[float], least: dict[int, list[tuple[int, float]]], right_to_left: bool
) -> Columns:
    centres: list[float] = []
    for at, half in enumerate(halves):
        beside = centres[-1] + halves[at - 1] + half + GAP if centres else half + GAP
        centres.append(max([beside, *(centres[first] + wide for first, wide in least.get(at, ()))]))
    width = centres[-1] + halves[-1] + GAP if centres else 2 * GAP
    if right_to_left:
        centres = [width - centre for centre in centres]
    return Columns(tuple(centres), tuple(halves), width)


def draw_node(
    graph: Graph, at: int, x: float, y: float, below: str, colour: str, **attributes: Any
) -> str:
    """The form of a node with baseline ``y``, and a small text in ``colour`` below it."""
    node = graph.nodes[at]
    style: dict[str, Any] = {"font_style": "italic"} if node.is_empty else {}
    return element(
        "g",
        element("title", escaped(node.title)) if node.title else "",
        text(node.form, x, y, colour="muted" if node.is_empty else "ink", **style),
        text(below, x, y + FONT, colour=colour, size=SMALL, **attributes) if below else "",
        **about(node.id),
    )


def draw_spans(graph: Graph, columns: Columns, y: float) -> str:
    """A bracket below the words of each multiword token, and the token's form."""
    parts = []
    for span in graph.spans:
        inside = range(span.first, span.last + 1)
        left = min(columns.centres[at] - columns.halves[at] for at in inside)
        right = max(columns.centres[at] + columns.halves[at] for at in inside)
        bracket = [(left, y - 4), (left, y), (right, y), (right, y - 4)]
        parts.append(
            element(
                "g",
                line(bracket, "muted", stroke_width=1),
                text(span.form, (left + right) / 2, y + FONT, size=SPAN_FONT),
                **about(*(graph.nodes[at].id for at in inside)),
            )
        )
    return "".join(parts)
