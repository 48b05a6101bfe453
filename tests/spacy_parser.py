"""A tiny spaCy pipeline, trained on a few sentences, in a models folder."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NAME = "spacy/tiny"

TREES = [
    ("Il gatto dorme .", "DET NOUN VERB PUNCT", [2, 3, 0, 3], "det nsubj ROOT punct"),
    ("Egli mangia .", "PRON VERB PUNCT", [2, 0, 2], "nsubj ROOT punct"),
    ("Un grande cane dorme", "DET ADJ NOUN VERB", [3, 3, 4, 0], "det amod nsubj ROOT"),
]
LONG = ("He came , he saw , he won , and then the man went home again .", "word " * 60)
"""Texts that tests of long sentences parse: the pipeline learns that each is one sentence."""


def write_pipeline(folder: Path) -> None:
    """Train ``spacy/tiny`` for a moment, into a models folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spacy = pytest.importorskip("spacy", reason="needs the extra spacy")
        from spacy.training import Example

        random.seed(0)
        np.random.seed(0)
        spacy.util.fix_random_seed(0)
        nlp = spacy.blank("it")
        nlp.add_pipe("morphologizer")
        nlp.add_pipe("parser", config={"min_action_freq": 1})
        nlp.add_pipe("ner")
        nlp.get_pipe("ner").add_label("PER")
        trees = [*TREES, *map(_chain, LONG)]
        examples = [Example.from_dict(nlp.make_doc(tree[0]), _annotation(*tree)) for tree in trees]
        optimizer = nlp.initialize(lambda: examples)
        for _ in range(25):
            nlp.update(examples, sgd=optimizer)
        (folder / "spacy").mkdir(parents=True)
        nlp.to_disk(folder / "spacy" / "tiny")


def _chain(text: str) -> tuple[str, str, list[int], str]:
    """A text in which each word hangs from the one before it."""
    words = text.split()
    deprels = ["ROOT", *["flat"] * (len(words) - 1)]
    return " ".join(words), " ".join(["X"] * len(words)), [*range(len(words))], " ".join(deprels)


def _annotation(text: str, upos: str, heads: list[int], deprels: str) -> dict[str, Any]:
    words = text.split()
    return {
        "words": words,
        "pos": upos.split(),
        "morphs": ["Number=Sing"] * len(words),
        "heads": [head - 1 if head else at for at, head in enumerate(heads)],
        "deps": deprels.split(),
        "entities": ["O"] * len(words),
    }
