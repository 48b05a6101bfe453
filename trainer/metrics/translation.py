"""Scores of translations: BLEU (Papineni et al. 2002) and chrF (Popović 2015), by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from syntax.errors import SpecError
from syntax.extras import missing_extra
from trainer.metrics import NamedScores
from trainer.metrics.significance import Floats, McNemar, sign_test

_SMOOTHING: Final = "exp"
"""Smoothing of a corpus without a common four-gram; sacrebleu's own."""


@dataclass(frozen=True, slots=True)
class TranslationScores(NamedScores):
    """Scores of translations; BLEU and chrF are of the corpus, from 0 to 100."""

    examples: int
    bleu: float
    chrf: float
    loss: float
    signatures: dict[str, str] = field(default_factory=dict)
    metric: str = "bleu"


def translation_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    loss: float,
    tokenize: str = "13a",
    metric: str = "bleu",
) -> TranslationScores:
    scorers = {"bleu": _bleu(tokenize), "chrf": _sacrebleu().CHRF()}
    if not hypotheses:
        return TranslationScores(0, 0.0, 0.0, loss, metric=metric)
    found = {
        name: float(scorer.corpus_score(list(hypotheses), [list(references)]).score)
        for name, scorer in scorers.items()
    }
    signatures = {name: str(scorer.get_signature()) for name, scorer in scorers.items()}
    return TranslationScores(
        len(hypotheses), **found, loss=loss, signatures=signatures, metric=metric
    )


def check_tokenize(tokenize: str) -> None:
    known = sorted(_sacrebleu().BLEU.TOKENIZERS)
    if tokenize not in known:
        raise SpecError(f"task.bleu is {tokenize!r}; sacrebleu knows {', '.join(known)}")


def bleu_counts(hypothesis: str, reference: str, scorer: Any) -> tuple[float, ...]:
    """Counts of BLEU: the lengths of both texts, n-grams in common, and in the hypothesis.

    N-grams have 1 to 4 words; the scorer comes from `bleu_scorer`.
    """
    found = scorer.sentence_score(hypothesis, [reference])
    return tuple(map(float, (found.sys_len, found.ref_len, *found.counts, *found.totals)))


def bleu_scorer(tokenize: str = "13a") -> Any:
    return _bleu(tokenize, effective_order=True)


def bleu(sums: Floats) -> Floats:
    """BLEU of sums of `bleu_counts`. *Shape:* (..., 10) to (...)."""
    compute = _sacrebleu().BLEU.compute_bleu

    def of_corpus(numbers: Floats) -> float:
        counts = numbers.round().astype(int).tolist()
        found = compute(counts[2:6], counts[6:], *counts[:2], smooth_method=_SMOOTHING)
        return float(found.score)

    scores: Floats = np.apply_along_axis(of_corpus, -1, sums)
    return scores


def collins_sign_test(one: Floats, other: Floats) -> McNemar:
    """The sign test of sentences of Collins et al. 2005, "Clause Restructuring for SMT".

    The first system is better in a sentence whose translation by it, in the place of the second
    system's, raises the BLEU of the second system's corpus. *Shape:* (N, 10) each.
    """
    whole = other.sum(0)
    change = bleu(whole - other + one) - bleu(whole)
    return sign_test(int((change > 0).sum()), int((change < 0).sum()))


def _bleu(tokenize: str, **options: Any) -> Any:
    return _sacrebleu().BLEU(tokenize=tokenize, force=True, smooth_method=_SMOOTHING, **options)


def _sacrebleu() -> Any:
    try:
        import sacrebleu
    except ImportError:
        raise missing_extra("scores of translations need sacrebleu", "train") from None
    return sacrebleu
