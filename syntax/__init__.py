"""The nouns that every package shares: trees, sentences, parses, matrices, fingerprints."""

from syntax.errors import ParsebankError
from syntax.fingerprint import Fingerprint, fingerprint
from syntax.parse import Parse
from syntax.registry import Registry
from syntax.sentence import EmptyNode, Sentence, Token, Word
from syntax.tree import DependencyTree

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
    "fingerprint",
]
