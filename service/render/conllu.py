"""Pipeline answers as CoNLL-U."""

from __future__ import annotations

from collections.abc import Iterator

from service.pipeline.records import FeatureAnswer, ItemFeatures
from syntax.errors import ParsebankError
from syntax.trees.conllu import format_conllu


def render_conllu(answer: FeatureAnswer) -> str:
    """All parses as CoNLL-U.

    Each text is a document, ``newdoc id`` counting from 1, and ``sent_id`` adds the number of the
    sentence. The error of a text is a comment ``# error = <id> <error_type>: <message>`` at the
    head of the file, so that the file stays valid (comments must be followed by a sentence).
    """
    return "".join((*_head(answer), *_documents(answer)))


def _head(answer: FeatureAnswer) -> Iterator[str]:
    yield f"# parser = {answer.parser.name} {answer.parser.fingerprint}\n"
    for number, item in enumerate(answer.items, 1):
        if isinstance(item, ParsebankError):
            yield f"# error = {number} {item.error_type}: {' '.join(item.message.split())}\n"


def _documents(answer: FeatureAnswer) -> Iterator[str]:
    for number, item in enumerate(answer.items, 1):
        if isinstance(item, ItemFeatures):
            yield f"# newdoc id = {number}\n"
            yield format_conllu(item.parse.document(str(number)))
