"""A sentence as a graph for pictures: nodes in the order of the text, and labelled edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from syntax.drawing.svg import is_right_to_left

if TYPE_CHECKING:
    from syntax.trees.sentence import EmptyNode, Sentence, Word
    from syntax.trees.tree import DependencyTree


@dataclass(frozen=True, slots=True)
class Node:
    """A word or an empty node; ``id`` is as in CoNLL-U (``8``, ``8.1``), ``title`` a hover text."""

    form: str
    tag: str = ""
    title: str = ""
    is_empty: bool = False
    id: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation, basic or enhanced, between nodes by their places; ``head`` is -1 at a root."""

    head: int
    dependent: int
    label: str
    is_enhanced: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A multiword token: its form, its first node and its last."""

    form: str
    first: int
    last: int


@dataclass(frozen=True)
class Graph:
    """Words and empty nodes, multiword tokens, and basic relations or those with an empty node."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    spans: tuple[Span, ...] = ()
    right_to_left: bool = False

    @cached_property
    def hung_by(self) -> dict[int, Edge]:
        """Basic edge of each node, or an empty node's first; the first node of a cycle has none."""
        edges = {edge.dependent: edge for edge in reversed(self.edges)}
        for start in range(len(self.nodes)):
            at, seen = start, {start}
            while at in edges and (at := edges[at].head) not in seen and at >= 0:
                seen.add(at)
            if at == start and start in edges:
                del edges[start]
        return edges

    def ends(self, edge: Edge) -> tuple[str, ...]:
        ends = (edge.dependent,) if edge.head < 0 else (edge.dependent, edge.head)
        return tuple(self.nodes[at].id for at in ends)

    def described(self) -> str:
        return "; ".join(
            f"{self.nodes[edge.dependent].form}: {edge.label}"
            + (f" of {self.nodes[edge.head].form}" if edge.head >= 0 else "")
            for edge in self.edges
        )


def graph_of_tree(tree: DependencyTree) -> Graph:
    """A tree without words: the nodes are their numbers."""
    numbers = map(str, range(1, len(tree) + 1))
    nodes = tuple(Node(number, id=number) for number in numbers)
    pairs = enumerate(zip(tree.heads, tree.deprels, strict=True))
    return Graph(nodes, tuple(Edge(head - 1, at, label) for at, (head, label) in pairs))


def graph_of_sentence(sentence: Sentence) -> Graph:
    """Words, empty nodes and multiword tokens; a word whose head is missing has no edge."""
    ids = sorted(
        [*((word.id, 0) for word in sentence.words), *(n.id for n in sentence.empty_nodes)]
    )
    place = {node: at for at, node in enumerate(ids)}
    drawn = {(word.id, 0): _word_node(word) for word in sentence.words}
    drawn |= {node.id: _empty_node(node) for node in sentence.empty_nodes}
    spans = tuple(
        Span(token.form, place[token.word_ids[0], 0], place[token.word_ids[-1], 0])
        for token in sentence.tokens
        if token.is_multiword
    )
    edges = (*_basic(sentence.words, place), *_enhanced(sentence, place))
    nodes = tuple(drawn[node] for node in ids)
    return Graph(nodes, edges, spans, is_right_to_left(sentence.text))


def _word_node(word: Word) -> Node:
    names = ("lemma", "upos", "xpos", "feats", "deprel", "deps", "misc")
    known = ((name, getattr(word, name)) for name in names)
    lines = [f"{word.id} {word.form}", *(f"{name}: {value}" for name, value in known if value)]
    return Node(word.form, word.upos or "", "\n".join(lines), id=str(word.id))


def _empty_node(node: EmptyNode) -> Node:
    form, lemma, upos, *_ = node.columns
    shown = form if form != "_" else lemma
    written = f"{node.id[0]}.{node.id[1]}"
    title = f"{written} {shown} (not in the text)"
    return Node(shown, "" if upos == "_" else upos, title, is_empty=True, id=written)


def _basic(words: Sequence[Word], place: dict[tuple[int, int], int]) -> Iterator[Edge]:
    for word in words:
        at, label = place[word.id, 0], word.deprel or "_"
        if word.head == 0:
            yield Edge(-1, at, label)
        elif word.head != word.id and (word.head, 0) in place:
            yield Edge(place[word.head or 0, 0], at, label)


def _enhanced(sentence: Sentence, place: dict[tuple[int, int], int]) -> Iterator[Edge]:
    empty = {node.id for node in sentence.empty_nodes}
    columns = [((word.id, 0), word.deps) for word in sentence.words]
    columns += [(node.id, node.columns[7]) for node in sentence.empty_nodes]
    for dependent, deps in columns if empty else ():
        for entry in (deps or "_").split("|"):
            name, _, label = entry.partition(":")
            head = _node_id(name)
            if head in place and head != dependent and empty & {head, dependent}:
                yield Edge(place[head], place[dependent], label or "_", is_enhanced=True)
            elif name == "0" and dependent in empty:
                yield Edge(-1, place[dependent], label or "_", is_enhanced=True)


def _node_id(name: str) -> tuple[int, int]:
    """Id as written: ``8`` or ``8.1``; (-1, 0) for anything else."""
    major, _, minor = name.partition(".")
    is_id = major.isdecimal() and (minor or "0").isdecimal()
    return (int(major), int(minor or 0)) if is_id else (-1, 0)
