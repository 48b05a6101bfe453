"""Dependency trees as pictures: arcs over the words, or words below their heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from syntax.drawing.columns import GAP, Columns, draw_node, draw_spans, place_columns
from syntax.drawing.graph import Edge, Graph, graph_of_sentence, graph_of_tree
from syntax.drawing.svg import (
    FONT,
    SMALL,
    Picture,
    about,
    element,
    escaped,
    fill,
    line,
    number,
    stroke,
)
from syntax.drawing.svg import text as draw_text

if TYPE_CHECKING:
    from syntax.trees.sentence import Sentence
    from syntax.trees.tree import DependencyTree

Layout = Literal["arcs", "hierarchy"]

_TAG_COLOURS: Final = {
    tag: colour
    for colour, tags in {
        "nominal": ("NOUN", "PROPN", "PRON", "NUM"),
        "verbal": ("VERB", "AUX"),
        "modifier": ("ADJ", "ADV", "DET"),
        "function": ("ADP", "CCONJ", "SCONJ", "PART"),
    }.items()
    for tag in tags
}
"""By UPOS; all other tags are muted. The tag itself is always written."""

_LEVEL: Final = 24.0

_ROW: Final = 62.0

_ASIDE: Final = 5.0

_CORNER: Final = 6.0


def draw_tree(tree: DependencyTree, layout: Layout = "arcs") -> Picture:
    graph = graph_of_tree(tree)
    return LAYOUTS[layout](graph, f"Dependency tree of {len(tree)} words")


def draw_sentence(sentence: Sentence, layout: Layout = "arcs") -> Picture:
    return LAYOUTS[layout](graph_of_sentence(sentence), sentence.text)


def arc_levels(edges: Sequence[Edge]) -> list[int]:
    """The height of each arc, from 1; that of a root's edge is above all others.

    An arc is higher than all arcs that it spans, and arcs of one height do not even cross.

    >>> arc_levels([Edge(1, 0, "nsubj"), Edge(-1, 1, "root"), Edge(1, 3, "obj"), Edge(3, 2, "det")])
    [1, 3, 2, 1]
    """
    levels = [0] * len(edges)
    spans = [sorted((edge.head, edge.dependent)) for edge in edges]
    arcs = [at for at, edge in enumerate(edges) if edge.head >= 0]
    placed: list[int] = []
    for at in sorted(arcs, key=lambda at: (spans[at][1] - spans[at][0], spans[at][0], at)):
        first, last = spans[at]
        below = (levels[b] for b in placed if spans[b][0] < last and first < spans[b][1])
        levels[at] = 1 + max(below, default=0)
        placed.append(at)
    top = 1 + max(levels, default=0)
    return [level or top for level in levels]


def _arcs(graph: Graph, title: str) -> Picture:
    below = [node.tag for node in graph.nodes]
    columns = place_columns(graph, below, graph.edges)
    levels = arc_levels(graph.edges)
    base = _LEVEL * max(levels, default=0) + FONT + 6
    tops = [base - 4 - _LEVEL * level for level in levels]
    pairs = list(zip(graph.edges, tops, strict=True))
    arcs = [_arc(graph, edge, columns, base, top) for edge, top in pairs]
    labels = [_arc_label(graph, edge, columns, top) for edge, top in pairs]  # over all arcs
    words = [
        draw_node(
            graph, at, columns.centres[at], base + FONT + 2, tag, _TAG_COLOURS.get(tag, "muted")
        )
        for at, tag in enumerate(below)
    ]
    return _with_spans(graph, title, columns, base + 2 * FONT + 2, [*arcs, *labels, *words])


def _hierarchy(graph: Graph, title: str) -> Picture:
    edges = graph.hung_by
    below = [edges[at].label if at in edges else node.tag for at, node in enumerate(graph.nodes)]
    columns = place_columns(graph, below)
    depths = _depths(len(graph.nodes), edges)
    tops = [GAP + FONT + _ROW * depth for depth in depths]
    lines = []
    for edge in edges.values():
        if edge.head >= 0:
            start = (columns.centres[edge.head], tops[edge.head] + FONT + 5)
            end = (columns.centres[edge.dependent], tops[edge.dependent] - FONT)
            look = {**_dashes(edge), **_about(graph, edge)}
            lines.append(line([start, end], "muted", stroke_width=1.2, **look))
    words = [
        draw_node(
            graph,
            at,
            columns.centres[at],
            tops[at],
            below[at],
            "muted",
            **(_arc_id(graph, edges[at]) if at in edges else {}),
        )
        for at in range(len(graph.nodes))
    ]
    return _with_spans(graph, title, columns, max(tops, default=GAP) + FONT, [*lines, *words])


LAYOUTS: Final[Mapping[str, Callable[[Graph, str], Picture]]] = {
    "arcs": _arcs,
    "hierarchy": _hierarchy,
}


def _with_spans(
    graph: Graph, title: str, columns: Columns, bottom: float, parts: Sequence[str]
) -> Picture:
    spans = draw_spans(graph, columns, bottom + 12)
    height = bottom + (12 + FONT if spans else 0) + 10
    return Picture(title, graph.described(), columns.width, height, "".join([*parts, spans]))


def _arc(graph: Graph, edge: Edge, columns: Columns, base: float, top: float) -> str:
    start, end = _ends(edge, columns)
    path = f"M{number(end)} {number(top)} V{number(base - 5)}"
    if edge.head >= 0:
        corner = min(_CORNER, abs(end - start) / 2) * (1 if end > start else -1)
        path = (
            f"M{number(start)} {number(base)} V{number(top + _CORNER)} "
            f"Q{number(start)} {number(top)} {number(start + corner)} {number(top)} "
            f"H{number(end - corner)} "
            f"Q{number(end)} {number(top)} {number(end)} {number(top + _CORNER)} "
            f"V{number(base - 5)}"
        )
    arrow = f"M{number(end - 3.5)} {number(base - 6)} h7 l-3.5 7 z"
    return element(
        "g",
        element("title", escaped(edge.label)),
        element("path", d=path, fill="none", stroke_width=1.2, **stroke("muted"), **_dashes(edge)),
        element("path", d=arrow, **fill("muted")),
        **_about(graph, edge),
    )


def _arc_label(graph: Graph, edge: Edge, columns: Columns, top: float) -> str:
    start, end = _ends(edge, columns)
    middle, words = (start + end) / 2, _about(graph, edge)
    return draw_text(edge.label, middle, top - 4, size=SMALL, has_halo=True, **words)


def _ends(edge: Edge, columns: Columns) -> tuple[float, float]:
    end = columns.centres[edge.dependent]
    if edge.head < 0:
        return end, end
    centre = columns.centres[edge.head]
    return centre + (_ASIDE if end > centre else -_ASIDE), end


def _about(graph: Graph, edge: Edge) -> dict[str, Any]:
    return {**about(*graph.ends(edge)), **_arc_id(graph, edge)}


def _arc_id(graph: Graph, edge: Edge) -> dict[str, Any]:
    """The attribute ``data-arc`` of a basic relation: the id of its dependent."""
    return {} if edge.is_enhanced else {"data_arc": graph.nodes[edge.dependent].id}


def _dashes(edge: Edge) -> dict[str, str]:
    return {"stroke_dasharray": "4 3"} if edge.is_enhanced else {}


def _depths(count: int, edges: Mapping[int, Edge]) -> list[int]:
    depths = []
    for node in range(count):
        depth = 0
        while node in edges and (node := edges[node].head) >= 0:
            depth += 1
        depths.append(depth)
    return depths
