"""Scores of translations: BLEU (Papineni et al. 2002) and chrF (Popović 2015), by sacrebleu.

And of programs and their summaries, as CodeXGLUE (Lu et al. 2021) scores them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final

import numpy as np

from syntax.errors import SpecError
from syntax.extras import missing_extra
from trainer.metrics import NamedScores
from trainer.metrics.significance import Floats, McNemar, sign_test

_SMOOTHING: Final = "exp"
"""Smoothing of a corpus without a common four-gram; sacrebleu's own."""


_ORDERS: Final = 4
_WORD: Final = re.compile(r"[^\W_]+|[^\w\s]|_")


@dataclass(frozen=True, slots=True)
class TranslationScores(NamedScores):
    """Scores of translations; BLEU and chrF are of the corpus, from 0 to 100.

    Attributes:
        exact_match: Share of the translations that are the reference.
        smoothed_bleu: Mean of `smoothed_bleu` over the sentences.
        codebleu: `codebleu` of the corpus, where the texts are programs.
    """

    examples: int
    bleu: float
    chrf: float
    exact_match: float
    smoothed_bleu: float
    loss: float
    signatures: dict[str, str] = field(default_factory=dict)
    metric: str = "bleu"
    codebleu: float | None = None


def translation_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    loss: float,
    tokenize: str = "13a",
    metric: str = "bleu",
    code: str | None = None,
) -> TranslationScores:
    scorers = {"bleu": _bleu(tokenize), "chrf": _sacrebleu().CHRF()}
    if not hypotheses:
        nothing = None if code is None else 0.0
        return TranslationScores(0, 0.0, 0.0, 0.0, 0.0, loss, metric=metric, codebleu=nothing)
    found = {
        name: float(scorer.corpus_score(list(hypotheses), [list(references)]).score)
        for name, scorer in scorers.items()
    }
    pairs = list(zip(hypotheses, references, strict=True))
    found["exact_match"] = fmean(hypothesis == reference for hypothesis, reference in pairs)
    found["smoothed_bleu"] = fmean(smoothed_bleu(*pair) for pair in pairs)
    if code is not None:
        found["codebleu"] = codebleu(hypotheses, references, code)
    signatures = {name: str(scorer.get_signature()) for name, scorer in scorers.items()}
    return TranslationScores(
        len(hypotheses), **found, loss=loss, signatures=signatures, metric=metric
    )


def smoothed_bleu(hypothesis: str, reference: str) -> float:
    """BLEU of one sentence, from 0 to 100, as CodeXGLUE scores summaries of code.

    Source: Lin and Och (2004, "ORANGE"): one is added to the matches and counts of n-grams of more
    than one word. CodeXGLUE's script also adds one to both lengths of the brevity penalty. Letters
    are lower case; words are letters and digits, or one other character. A text without a word of
    the reference has 0.
    """
    ours, theirs = ([*_WORD.findall(text.lower())] for text in (hypothesis, reference))
    precision = 0.0
    for order in range(1, _ORDERS + 1):
        written, wanted = (_ngrams(words, order) for words in (ours, theirs))
        added = int(order > 1)
        matches = (written & wanted).total() + added
        if not matches:
            return 0.0
        precision += math.log(matches / (written.total() + added)) / _ORDERS
    brevity = min(0.0, 1 - (len(theirs) + 1) / (len(ours) + 1))
    return 100 * math.exp(precision + brevity)


def codebleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """CodeBLEU of programs (Ren et al. 2020), from 0 to 100, by the package of this name.

    The mean of four parts: BLEU, BLEU in which key words count five times as much, subtrees of the
    syntax in common, and data flow in common. Where no reference has data flow, or none is in
    common, the package counts the fourth as 1. Words are what white space separates.
    """
    found = require_codebleu()([*references], [*hypotheses], lang=language)
    return 100 * float(found["codebleu"])


def require_codebleu() -> Any:
    """The scorer of the package, or the error that names its extra."""
    try:
        from codebleu import calc_codebleu
    except ImportError:
        raise missing_extra("CodeBLEU needs the package codebleu", "code") from None
    return calc_codebleu


def _ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[at:] for at in range(order)), strict=False))


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
