"""Scores of dependency trees over given words: attachment, as the CoNLL 2018 shared task counts it.

Words are those of the gold standard, so precision and recall are equal; a word that truncation cut
is wrong. `syntax.trees.scoring` compares analyses that split the text otherwise.

Source: Zeman et al. (2018), section 5, and https://universaldependencies.org/conll18/evaluation.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from trainer.metrics import NamedScores, share

FUNCTION_RELATIONS: Final = frozenset(
    ("aux", "case", "cc", "clf", "cop", "det", "mark", "punct"),
)
"""Universal relations of function words and punctuation, which CLAS leaves out."""

PLAIN_TAGS: Final = frozenset(("PUNCT", "SYM"))
"""Words that papers after AllenNLP's metric leave out, by their gold UPOS."""

NOT_ATTACHED: Final = -2

METRICS: Final = (
    *("uas", "las", "clas", "las_subtypes"),
    *("uas_no_punct", "las_no_punct", "las_no_punct_subtypes", "upos"),
)


@dataclass(frozen=True, slots=True)
class ParsedWord:
    """A word as the gold standard and a system have it.

    Heads are positions in the text, -1 for a root; ``head`` is -2 for none.
    """

    gold_head: int
    head: int
    gold_relation: str | None
    relation: str | None
    gold_upos: str | None = None
    upos: str | None = None


@dataclass(frozen=True, slots=True)
class AttachmentScores(NamedScores):
    """Scores of dependency trees; shares of words between 0 and 1.

    Attributes:
        las: Of universal relations: subtypes are cut, as in CoNLL 2018.
        las_subtypes: As ``las``, with whole relations.
        uas_no_punct, las_no_punct, las_no_punct_subtypes: Of words whose gold UPOS is neither PUNCT
            nor SYM.
        cut_words: Words that truncation cut; they count as wrong.
        pieceless_words: Words without a piece, which have the state of another one.
    """

    examples: int
    words: int
    uas: float
    las: float
    clas: float
    las_subtypes: float
    uas_no_punct: float
    las_no_punct: float
    las_no_punct_subtypes: float
    upos: float | None
    cut_words: int
    pieceless_words: int
    loss: float
    metric: str = "las"


def attachment_shares(
    words: Iterable[ParsedWord], *, tagged: bool = False
) -> dict[str, tuple[float, float]]:
    """Numerator and denominator of each metric; ``tagged`` adds ``upos``, wrong without a tag.

    >>> words = [ParsedWord(1, 1, "nsubj:pass", "nsubj"), ParsedWord(-1, -1, "root", "root")]
    >>> shares = attachment_shares(words)
    >>> shares["las"], shares["las_subtypes"]
    ((2.0, 2.0), (1.0, 2.0))
    """
    found = dict.fromkeys(METRICS, (0.0, 0.0))
    for word in words:
        head = word.head == word.gold_head
        universal = head and _universal(word.relation) == _universal(word.gold_relation)
        whole = head and word.relation == word.gold_relation
        _add(found, "uas", head)
        _add(found, "las", universal)
        _add(found, "las_subtypes", whole)
        if word.gold_upos not in PLAIN_TAGS:
            _add(found, "uas_no_punct", head)
            _add(found, "las_no_punct", universal)
            _add(found, "las_no_punct_subtypes", whole)
        content = [_is_content(word.gold_relation), _is_content(word.relation)]
        _add(found, "clas", 2 * (content[0] and universal), sum(content))
        _add(found, "upos", word.upos is not None and word.upos == word.gold_upos)
    return found if tagged else {name: of for name, of in found.items() if name != "upos"}


def attachment_scores(
    examples: Sequence[Mapping[str, tuple[float, ...]]],
    loss: float,
    metric: str = "las",
    cut_words: int = 0,
    pieceless_words: int = 0,
) -> AttachmentScores:
    total = {
        name: tuple(sum(of[name][part] for of in examples if name in of) for part in (0, 1))
        for name in METRICS
    }
    scores = {name: share(part, whole) for name, (part, whole) in total.items()}
    return AttachmentScores(
        examples=len(examples),
        words=int(total["uas"][1]),
        **{name: score for name, score in scores.items() if name != "upos"},
        upos=scores["upos"] if any("upos" in of for of in examples) else None,
        cut_words=cut_words,
        pieceless_words=pieceless_words,
        loss=loss,
        metric=metric,
    )


def _add(found: dict[str, tuple[float, float]], name: str, part: float, whole: float = 1) -> None:
    before = found[name]
    found[name] = (before[0] + part, before[1] + whole)


def _universal(relation: str | None) -> str:
    return (relation or "_").partition(":")[0]


def _is_content(relation: str | None) -> bool:
    return relation is not None and _universal(relation) not in FUNCTION_RELATIONS
