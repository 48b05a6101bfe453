"""The running text of a treebank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syntax.trees.sentence import Sentence


def raw_text(sentences: Sequence[Sentence]) -> str:
    """The running text of a treebank: sentences as written, an empty line between paragraphs.

    As UD's ``conllu_to_text.pl`` makes the texts of the CoNLL 2018 evaluation, but for its
    line breaks within a paragraph, which are white space like any other.
    """
    return "".join(_running(sentences)).strip() + "\n"


def _running(sentences: Sequence[Sentence]) -> Iterator[str]:
    for sentence in sentences:
        if _starts_paragraph(sentence):
            yield "\n\n"
        yield sentence.text
        if not _glued(sentence):
            yield " "


def _starts_paragraph(sentence: Sentence) -> bool:
    return any(line.startswith(("# newpar", "# newdoc")) for line in sentence.comments)


def _glued(sentence: Sentence) -> bool:
    misc = sentence.misc_of(sentence.tokens[-1]) if sentence.tokens else None
    return "SpaceAfter=No" in (misc or "").split("|")
