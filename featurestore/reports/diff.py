"""Where two parsers agree on the same texts, and where they do not."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Final

from featurestore.parsers import store_parsers
from featurestore.sql.session import named_faults
from featurestore.store import FeatureStore
from syntax.errors import SpecError
from syntax.parse import Parse
from syntax.scoring import METRICS, Score, evaluate

_BATCH: Final = 2_000
"""Texts in memory at a time."""


@dataclass(frozen=True)
class Difference:
    """A text that the parsers read differently.

    Attributes:
        text: The text.
        first_key, second_key: Keys of the two parses.
        las: Labelled agreement (F1, per cent).
    """

    text: str
    first_key: str
    second_key: str
    las: float


@dataclass(frozen=True)
class Agreement:
    """Two parsers over the texts that both have parsed in the same mode.

    Attributes:
        first, second: Fingerprints of the parsers.
        texts: How many there are.
        identical: Texts whose trees, tags and labels are the same.
        scores: By the names of `syntax.scoring.METRICS`, the first parser taken as gold; F1 does
            not depend on which is.
        confusions: For ``upos`` and ``deprel``, what the two said of words with the same
            characters: first, second, number of words; the commonest disagreements first.
        differences: The texts that differ most.
    """

    first: str
    second: str
    texts: int
    identical: int
    scores: dict[str, Score]
    confusions: dict[str, list[tuple[str, str, int]]]
    differences: list[Difference]

    def to_json(self) -> dict[str, Any]:
        """The attributes as plain JSON, F1 and accuracy over aligned words for the scores."""
        figures = {
            name: {"f1": score.f1, "aligned_accuracy": score.aligned_accuracy}
            for name, score in self.scores.items()
        }
        return {**asdict(self), "scores": figures}


@named_faults()
def parser_agreement(
    store: FeatureStore,
    first: str,
    second: str,
    *,
    dataset: str | None = None,
    lang: str | None = None,
    shown: int = 20,
) -> Agreement:
    """Compare two parsers on the texts that both have parsed.

    Args:
        store: The store.
        first: Name or fingerprint (six digits or more) of a parser.
        second: The same of the other.
        dataset: Only texts of this dataset.
        lang: Only texts of this language.
        shown: How many confusions and differing texts to give, at most.

    Raises:
        UnknownParserError: The store has no parse by such a parser.
        SpecError: The two have no text in common, or are one.
        StoreError: The store cannot be read.
    """
    # Of several by one name, the last that was described.
    ours, theirs = (store_parsers(store, name)[-1] for name in (first, second))
    if ours == theirs:
        raise SpecError(f"{first!r} and {second!r} are one parser, {ours}; name two")
    pairs = _pairs(store, ours, theirs, dataset, lang)
    if not pairs:
        raise SpecError(f"no text was parsed by both {first!r} and {second!r}; backfill one more")
    scores, identical, differences = _compare(store, pairs, shown)
    return Agreement(
        first=ours,
        second=theirs,
        texts=len(pairs),
        identical=identical,
        scores=scores,
        confusions={
            column: _confusions(store, pairs, column, shown) for column in ("upos", "deprel")
        },
        differences=differences,
    )


def _pairs(
    store: FeatureStore, first: str, second: str, dataset: str | None, lang: str | None
) -> list[tuple[str, str]]:
    """Keys of the two parses of each common text, by text."""
    query = """
        with chosen as (
            select distinct unnest(texts) as text from examples where dataset = $dataset
        )
        select a.key, b.key
        from parses a join parses b using (lang, mode, text)
        where a.parser = $first and b.parser = $second
            and ($dataset is null or text in (select text from chosen))
            and ($lang is null or lang = $lang)
        order by text, a.key
    """
    params = {"first": first, "second": second, "dataset": dataset, "lang": lang}
    return store.sql(query, params).fetchall()


def _compare(
    store: FeatureStore, pairs: Sequence[tuple[str, str]], shown: int
) -> tuple[dict[str, Score], int, list[Difference]]:
    """Summed scores, the number of texts without a difference, and the worst texts."""
    totals = dict.fromkeys(METRICS, Score(0, 0, 0))
    identical, tie = 0, count()
    worst: list[tuple[float, int, Difference]] = []
    for first_key, second_key, ours, theirs in _parses(store, pairs):
        scores = evaluate(ours.sentences(), theirs.sentences())
        totals = {name: _sum(totals[name], scores[name]) for name in METRICS}
        identical += _same(ours, theirs)
        difference = Difference(ours.text, first_key, second_key, scores["LAS"].f1)
        heapq.heappush(worst, (-difference.las, next(tie), difference))
        if len(worst) > shown:
            heapq.heappop(worst)
    listed = [difference for _, _, difference in sorted(worst, reverse=True)]
    return totals, identical, [difference for difference in listed if difference.las < 100.0]


def _parses(
    store: FeatureStore, pairs: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, Parse, Parse]]:
    for start in range(0, len(pairs), _BATCH):
        batch = pairs[start : start + _BATCH]
        records = store.parses.get_many([key for pair in batch for key in pair])
        for first, second in batch:
            yield first, second, records[first].parse, records[second].parse


def _same(ours: Parse, theirs: Parse) -> bool:
    columns = ("word_start", "word_end", "head", "deprel", "upos")
    return all(getattr(ours, column) == getattr(theirs, column) for column in columns)


def _sum(one: Score, other: Score) -> Score:
    aligned = None if other.aligned is None else (one.aligned or 0) + other.aligned
    return Score(
        one.gold + other.gold, one.system + other.system, one.correct + other.correct, aligned
    )


def _confusions(
    store: FeatureStore, pairs: Sequence[tuple[str, str]], column: str, shown: int
) -> list[tuple[str, str, int]]:
    query = f"""
        with pairs as (select unnest($firsts) as first, unnest($seconds) as second)
        select a.{column}, b.{column}, count(*) as n
        from pairs join words a on a.key = first join words b on b.key = second
            and a.word_start = b.word_start and a.word_end = b.word_end and a.form = b.form
        where a.{column} is distinct from b.{column}
        group by all order by n desc, 1, 2 limit {int(shown)}
    """
    firsts, seconds = (list(keys) for keys in zip(*pairs, strict=True))
    return store.sql(query, {"firsts": firsts, "seconds": seconds}).fetchall()
