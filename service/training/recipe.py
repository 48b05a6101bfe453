"""Training recipes: every option of a UDPipe model, as one frozen value.

The shipped English models were made with ``default`` and ``full``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from syntax import Registry

Options = Mapping[str, int | float | str]
"""Options of one UDPipe component, by UDPipe's own names."""


@dataclass(frozen=True)
class Recipe:
    """Training of the three components of a model.

    Attributes:
        tokenizer: Options of the tokenizer and sentence segmenter.
        tagger: Options of the tagger: UPOS, and the `columns`.
        fold_tagger: Options of the taggers of the parser's own training data; see `folds`.
        parser: Options of the parser, which is trained on the tags it is given.
        columns: Columns that the tagger learns beside forms and UPOS: any of ``lemma``, ``xpos``,
            ``feats``. The parser and the fold taggers see none of them.
        folds: The parser's training data is tagged in so many parts, each by a tagger trained on
            the others (jackknifing). On the sentences it was trained on, a tagger makes only half
            as many errors.
        block: Length in sentences of the runs that are dealt out to the folds in turn. Treebanks
            are sorted by source; folds cut as quarters would be tagged from other genres only.
        limit: Use only so many sentences of each split; ``None`` for all.
    """

    name: str
    tokenizer: Options
    tagger: Options
    fold_tagger: Options
    parser: Options
    columns: tuple[str, ...] = ()
    folds: int = 4
    block: int = 40
    limit: int | None = None


def format_options(options: Options) -> str:
    """Write options as UDPipe reads them.

    >>> format_options({"iterations": 4, "oracle": "static"})
    'iterations=4;oracle=static'
    """
    return ";".join(f"{name}={value}" for name, value in options.items())


def _tagger(
    iterations: int, rules: int, enrich: int, *, prune: bool = False, prefixes: int | None = None
) -> Options:
    """Options of a tagger; rules and enrich are the analyses guessed per form.

    With ``prefixes``, the most to guess from, it learns XPOS, FEATS and lemmas together with UPOS.
    Pruning leaves out the features that never served a correct tag: a third of the file.
    """
    return {
        "models": 1,
        "templates_1": "tagger",
        "guesser_suffix_rules_1": rules,
        "guesser_enrich_dictionary_1": enrich,
        **({"guesser_prefixes_max_1": prefixes} if prefixes is not None else {}),
        **{
            f"{what}_{column}_1": int(prefixes is not None)
            for column in ("lemma", "xpostag", "feats")
            for what in ("use", "provide")
        },
        "iterations_1": iterations,
        "early_stopping": 1,
        **({"prune_features_1": 1} if prune else {}),
    }


def _parser(iterations: int, hidden: int, form: int) -> Options:
    """Options of a projective arc-standard parser over forms, UPOS and relations.

    ``use_gold_tags`` means "the tags in the training data", which jackknifing has put there.
    """
    return {
        "transition_system": "projective",
        "transition_oracle": "dynamic",
        "structured_interval": 0,
        "single_root": 1,
        "use_gold_tags": 1,
        "embedding_form": form,
        "embedding_upostag": 20,
        "embedding_deprel": 20,
        "embedding_xpostag": 0,
        "embedding_feats": 0,
        "embedding_lemma": 0,
        "hidden_layer": hidden,
        "batch_size": 10,
        "iterations": iterations,
        "learning_rate": 0.01,
        "learning_rate_final": 0.0005,
        "l2": 0.5,
        "early_stopping": 1,
    }


def _tokenizer(epochs: int, dimension: int) -> Options:
    return {
        "dimension": dimension,
        "epochs": epochs,
        "batch_size": 50,
        "learning_rate": 0.005,
        "dropout": 0.1,
        "early_stopping": 1,
    }


RECIPES: Registry[Recipe] = Registry("training recipe")

DEFAULT = RECIPES.add(
    "default",
    Recipe(
        name="default",
        tokenizer=_tokenizer(epochs=30, dimension=24),
        tagger=_tagger(iterations=5, rules=6, enrich=2, prune=True),
        fold_tagger=_tagger(iterations=4, rules=4, enrich=2),
        parser=_parser(iterations=13, hidden=150, form=40),
    ),
)

FULL = RECIPES.add(
    "full",
    replace(
        DEFAULT,
        name="full",
        tagger=_tagger(iterations=7, rules=8, enrich=2, prune=True, prefixes=4),
        columns=("lemma", "xpos", "feats"),
    ),
)
"""The default's tokenizer and parser with every tag and lemmas; for larger files.

UDPipe's own models have a second tagger for lemmas, and six guesses for each known form in place of
two. All tags of 91.2 % of the words of UD_English-EWT's dev file are right; with four iterations,
one guess and six rules, of 90.4 %.
"""

TINY = RECIPES.add(
    "tiny",
    Recipe(
        name="tiny",
        tokenizer=_tokenizer(epochs=2, dimension=16),
        tagger=_tagger(iterations=1, rules=2, enrich=2),
        fold_tagger=_tagger(iterations=1, rules=2, enrich=2),
        parser=_parser(iterations=1, hidden=16, form=8),
        folds=2,
        block=5,
        limit=200,
    ),
)
