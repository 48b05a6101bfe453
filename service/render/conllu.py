"""Pipeline answers as CoNLL-U."""

from __future__ import annotations

from service.pipeline.records import FeatureAnswer
from syntax.errors import ParsebankError
from syntax.trees.conllu import format_conllu


def render_conllu(answer: FeatureAnswer) -> str:
    """All parses as CoNLL-U.

    Each text is a document, ``newdoc id`` counting from 1, and ``sent_id`` adds the number of the
    sentence. The error of a text is a comment ``# error = <id> <error_type>: <message>`` at the
    head of the file, because comments must be followed by a sentence.
    """
    head = [f"# parser = {answer.parser.name} {answer.parser.fingerprint}\n"]
    documents = []
    for number, item in enumerate(answer.items, 1):
        if isinstance(item, ParsebankError):
            message = " ".join(item.message.split())
            head.append(f"# error = {number} {item.error_type}: {message}\n")
        else:
            document = format_conllu(item.parse.document(str(number)))
            documents.append(f"# newdoc id = {number}\n{document}")
    return "".join([*head, *documents])
