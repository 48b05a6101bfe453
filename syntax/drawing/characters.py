"""A sentence as a tree of characters, for terminals and plain files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syntax.drawing.graph import Graph, graph_of_sentence

if TYPE_CHECKING:
    from syntax.trees.sentence import Sentence


def tree_text(sentence: Sentence) -> str:
    """The words, each below its head, in the order of the text; then the multiword tokens.

    Empty nodes are in square brackets. A word without a head stands at the left, as a root does.

    >>> from syntax.trees.sentence import Sentence, Token, Word
    >>> words = (Word(1, "Birds", head=2, deprel="nsubj"), Word(2, "sing", head=0, deprel="root"))
    >>> print(tree_text(Sentence(words, (Token("Birds", (1,)), Token("sing", (2,))))))
    Birds sing
    └── sing  root
        └── Birds  nsubj
    """
    graph = graph_of_sentence(sentence)
    lines = [sentence.text, *_branches(graph)]
    for span in graph.spans:
        inside = graph.nodes[span.first : span.last + 1]
        words = " + ".join(node.form for node in inside if not node.is_empty)
        lines.append(f"    {span.form} = {words}")
    return "\n".join(lines)


def _branches(graph: Graph) -> list[str]:
    heads = graph.hung_by
    below: dict[int, list[int]] = {}
    for at in range(len(graph.nodes)):
        below.setdefault(heads[at].head if at in heads else -1, []).append(at)
    lines: list[str] = []
    stack = [(at, "", at == below.get(-1, [at])[-1]) for at in reversed(below.get(-1, []))]
    while stack:
        at, indent, is_last = stack.pop()
        node, edge = graph.nodes[at], heads.get(at)
        form = f"[{node.form}]" if node.is_empty else node.form
        line = "  ".join(filter(None, (form, edge.label if edge else "", node.tag)))
        lines.append(f"{indent}{'└── ' if is_last else '├── '}{line}")
        deeper = indent + ("    " if is_last else "│   ")
        children = below.get(at, [])
        stack += [(child, deeper, child == children[-1]) for child in reversed(children)]
    return lines
