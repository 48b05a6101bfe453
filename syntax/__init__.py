"""Trees, sentences, parses, matrices and fingerprints, which every package shares.

Names are imported when they are first used, so that the command line starts without NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

# The module of this name hides a name that is only imported when it is used.
from syntax.fingerprint import Fingerprint, fingerprint

if TYPE_CHECKING:
    from syntax.errors import ParsebankError
    from syntax.matrices import ancestor_mask, tree_depth, tree_distance
    from syntax.registry import Registry
    from syntax.trees.conllu import (
        format_conllu,
        parse_conllu,
        parse_from_sentences,
        read_conllu,
        write_conllu,
    )
    from syntax.trees.parse import Parse
    from syntax.trees.sentence import EmptyNode, Sentence, Token, Word
    from syntax.trees.tree import DependencyTree

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

_HOMES: Final = {
    "DependencyTree": "trees.tree",
    "EmptyNode": "trees.sentence",
    "Parse": "trees.parse",
    "ParsebankError": "errors",
    "Registry": "registry",
    "Sentence": "trees.sentence",
    "Token": "trees.sentence",
    "Word": "trees.sentence",
    "ancestor_mask": "matrices",
    "tree_depth": "matrices",
    "tree_distance": "matrices",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"syntax.{_HOMES.get(name, 'trees.conllu')}"), name)
