"""Write CoNLL-U: the bytes that were read, or a valid file for sentences made in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path

from syntax.errors import InputError
from syntax.trees.sentence import EmptyNode, Sentence, Token, Word


def write_conllu(sentences: Iterable[Sentence], path: str | PathLike[str]) -> None:
    """Write sentences to a file, one at a time (UTF-8, LF)."""
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            file.write(format_sentence(sentence))


def format_conllu(sentences: Iterable[Sentence]) -> str:
    return "".join(map(format_sentence, sentences))


def format_sentence(sentence: Sentence) -> str:
    """One sentence with the empty line that ends it."""
    lines = [*sentence.comments, *_lines(sentence)]
    text = "\n".join(lines)
    if text.count("\n") != len(lines) - 1 or "\r" in text:
        raise InputError(f"sentence {sentence.sent_id!r} has a line break in a column or comment")
    for comment in sentence.comments:
        if not comment.startswith("#"):
            raise InputError(f"the comment {comment!r} does not start with #")
    return f"{text}\n\n"


def _lines(sentence: Sentence) -> Iterator[str]:
    ranges = {token.word_ids[0]: token for token in sentence.tokens if token.is_multiword}
    nodes: dict[int, list[EmptyNode]] = {}
    for node in sentence.empty_nodes:
        nodes.setdefault(node.id[0], []).append(node)
    if nodes.keys() - range(len(sentence.words) + 1):
        raise InputError(f"an empty node of sentence {sentence.sent_id!r} does not follow a word")
    yield from map(_node_line, nodes.get(0, ()))
    for word in sentence.words:
        if word.id in ranges:
            yield _range_line(ranges[word.id])
        yield _word_line(word)
        yield from map(_node_line, nodes.get(word.id, ()))


def _word_line(word: Word) -> str:
    head = None if word.head is None else str(word.head)
    return _joined(
        (
            *(str(word.id), word.form, word.lemma, word.upos, word.xpos),
            *(word.feats, head, word.deprel, word.deps, word.misc),
        )
    )


def _range_line(token: Token) -> str:
    span = f"{token.word_ids[0]}-{token.word_ids[-1]}"
    return _joined(
        (
            *(span, token.form, token.lemma, token.upos, token.xpos),
            *(token.feats, token.head, token.deprel, token.deps, token.misc),
        )
    )


def _node_line(node: EmptyNode) -> str:
    return _joined((f"{node.id[0]}.{node.id[1]}", *node.columns))


def _joined(columns: tuple[str | None, ...]) -> str:
    line = "\t".join(["_" if column is None else column for column in columns])
    if line.count("\t") != 9 or "" in columns:
        raise InputError(
            f"the line of {columns[1]!r} (id {columns[0]}) needs ten columns, none of them empty "
            "or with a tab in it"
        )
    return line


def raw_text(sentences: Sequence[Sentence]) -> str:
    """Running text of a treebank, as UD's ``conllu_to_text.pl`` makes it, but in longer lines."""
    parts: list[str] = []
    for sentence in sentences:
        if any(line.startswith(("# newpar", "# newdoc")) for line in sentence.comments):
            parts.append("\n\n")
        parts.append(sentence.text)
        misc = sentence.misc_of(sentence.tokens[-1]) if sentence.tokens else None
        if "SpaceAfter=No" not in (misc or "").split("|"):
            parts.append(" ")
    return "".join(parts).strip() + "\n"
