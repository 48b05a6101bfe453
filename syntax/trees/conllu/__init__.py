"""CoNLL-U: a lossless reader and writer, and a `Parse` from gold sentences."""

from syntax.trees.conllu.parses import parse_from_sentences
from syntax.trees.conllu.reader import parse_conllu, read_conllu
from syntax.trees.conllu.writer import format_conllu, raw_text, write_conllu

__all__ = [
    "format_conllu",
    "parse_conllu",
    "parse_from_sentences",
    "raw_text",
    "read_conllu",
    "write_conllu",
]
