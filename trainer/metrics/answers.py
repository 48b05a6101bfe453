"""F1 and exact match of extracted answers, as SQuAD and MLQA score them.

Rajpurkar et al. 2016 and 2018 (SQuAD 1.1 and 2.0): answers are lower-cased, and lose punctuation
and articles. Lewis et al. 2020 (MLQA): likewise with the articles of each language, Unicode's
punctuation, and characters for words in Chinese. XQuAD is scored as SQuAD 1.1 in every language.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal

Rules = Literal["squad", "squad2", "mlqa"]

_ARTICLES: Final = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "ar": r"\sال^|ال",
}
"""Articles by MLQA's scorer, by language; the other languages have none."""

_UNSPACED: Final = frozenset({"zh"})


def rules_text(rules: Rules | None) -> str:
    """The sentence of a table about rules; empty for None.

    >>> rules_text("squad"), rules_text(None)
    (' Answers compared as by SQuAD 1.1.', '')
    """
    names = {"squad": "SQuAD 1.1", "squad2": "SQuAD 2.0", "mlqa": "MLQA"}
    return "" if rules is None else f" Answers compared as by {names[rules]}."


def normalised(text: str, lang: str = "en", rules: Rules = "squad") -> list[str]:
    """The words of an answer that count; SQuAD's rules know English only.

    >>> normalised("The  Denver Broncos."), normalised("Die Elbe", "de", "mlqa")
    (['denver', 'broncos'], ['elbe'])
    """
    kept = "".join(char for char in text.lower() if not _is_punctuation(char, rules))
    articles = _ARTICLES.get(lang if rules == "mlqa" else "en")
    if articles is not None:
        kept = re.sub(articles, " ", kept)
    if rules == "mlqa" and lang in _UNSPACED:
        # Chinese characters one by one, runs of others as words.
        return re.findall(r"[一-龥]|[^\s一-龥]+", kept)
    return kept.split()


def answer_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """F1 of two answers' words; 1 where both have none, 0 where one has none.

    >>> answer_f1(["denver", "broncos"], ["broncos"])
    0.6666666666666666
    """
    if not predicted or not gold:
        return float(list(predicted) == list(gold))
    shared = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * shared / (len(predicted) + len(gold))


def answer_scores(
    predicted: str, golds: Iterable[str], lang: str = "en", rules: Rules = "squad"
) -> tuple[float, float]:
    """Exact match and F1 of one question, against the gold answer that fits best.

    By SQuAD 2.0's rules, a gold answer of which nothing is left counts only if all are such; by the
    others', it is matched exactly or not at all.

    >>> answer_scores("the Elbe", ["Elbe", "river Elbe"]), answer_scores("", [])
    ((1.0, 1.0), (1.0, 1.0))
    >>> answer_scores("The", ["a"]), answer_scores("The", ["a"], rules="squad2")
    ((1.0, 0.0), (1.0, 1.0))
    """
    ours = normalised(predicted, lang, rules)
    words = [normalised(gold, lang, rules) for gold in golds]
    left = [gold for gold in words if gold]
    if words and rules != "squad2":
        # No word is shared with an answer of none, and these scripts then give 0.
        return float(ours in words), max((answer_f1(ours, gold) for gold in left), default=0.0)
    wanted = left or [[]]
    return float(ours in wanted), max(answer_f1(ours, gold) for gold in wanted)


def best_threshold(
    scores: Sequence[float], differences: Sequence[float], of_no_answer: Sequence[float]
) -> tuple[float, float]:
    """The threshold with the best mean score, and that score (SQuAD 2.0's evaluation on dev).

    A question is answered when null score minus best score, its difference, is not above it.

    >>> best_threshold([1.0, 0.0], [-2.0, 3.0], [0.0, 1.0])
    (-2.0, 1.0)
    """
    total = sum(of_no_answer)
    best, threshold = total, min(differences, default=0.0) - 1.0
    order = sorted(range(len(scores)), key=differences.__getitem__)
    for place, at in enumerate(order):
        total += scores[at] - of_no_answer[at]
        is_last = place + 1 == len(order) or differences[order[place + 1]] > differences[at]
        if is_last and total > best:
            best, threshold = total, differences[at]
    return threshold, best / max(len(scores), 1)


def _is_punctuation(char: str, rules: Rules) -> bool:
    known = char in string.punctuation
    return known or (rules == "mlqa" and unicodedata.category(char).startswith("P"))
