"""The nouns that every package shares: trees, sentences, parses, matrices, fingerprints."""

from typing import TYPE_CHECKING, Any

from syntax.conllu import (
    format_conllu,
    parse_conllu,
    parse_from_sentences,
    read_conllu,
    write_conllu,
)
from syntax.errors import ParsebankError
from syntax.fingerprint import Fingerprint, fingerprint
from syntax.parse import Parse
from syntax.registry import Registry
from syntax.sentence import EmptyNode, Sentence, Token, Word
from syntax.tree import DependencyTree

if TYPE_CHECKING:
    from syntax.matrices import ancestor_mask, tree_depth, tree_distance

__all__ = [
    "DependencyTree",
    "EmptyNode",
    "Fingerprint",
    "Parse",
    "ParsebankError",
    "Registry",
    "Sentence",
    "Token",
    "Word",
    "ancestor_mask",
    "fingerprint",
    "format_conllu",
    "parse_conllu",
    "parse_from_sentences",
    "read_conllu",
    "tree_depth",
    "tree_distance",
    "write_conllu",
]

_COMPILED = {"ancestor_mask", "tree_depth", "tree_distance"}


def __getattr__(name: str) -> Any:
    # The matrices are compiled by numba, whose import takes longer than the command line may.
    if name in _COMPILED:
        from syntax import matrices

        return getattr(matrices, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
