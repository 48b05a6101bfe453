"""Agreement and differences of two parsers on the same texts."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, count
from typing import Any, Final

from featurestore.dataset.parsers import store_parser
from featurestore.sql.session import named_faults
from featurestore.store import FeatureStore
from syntax.errors import SpecError, UnknownDatasetError, UnknownLanguageError
from syntax.registry import unknown_name
from syntax.trees.parse import Parse
from syntax.trees.scoring import METRICS, Score, evaluate

_BATCH: Final = 2_000

_TAGS: Final = ("upos", "deprel")

_INPUTS: Final = r"""
    with inputs as (
        select key, parser, lang, mode, text,
            case when mode in ('pretokenized', 'tokens_mwt')
                then [token_start, token_end] end as tokens,
            regexp_replace(text, '[\s\p{Z}]', '', 'g') as characters,
            list_position(
                ['pretokenized', 'tokens_mwt', 'retokenize', 'sentence', 'raw', 'gold'], mode
            ) as rank
        from parses where parser in ($first, $second) and ($lang is null or lang = $lang)
    )
"""
"""Parses by either parser. A parse does not record which tokens were retokenized."""

_SAME_INPUTS: Final = f"""
    {_INPUTS}, chosen as (
        select distinct unnest(parse_keys) as key from examples where dataset = $dataset
    )
    select a.key, b.key, a.mode, b.mode from inputs a join inputs b using (lang, characters)
    where a.parser = $first and b.parser = $second
        and ($dataset is null or a.key in (from chosen) or b.key in (from chosen))
        and case when a.mode = b.mode
            then a.text = b.text and a.tokens is not distinct from b.tokens
            else 'gold' in (a.mode, b.mode) end
    qualify row_number() over (
        partition by lang, characters
        order by a.mode <> b.mode, least(a.rank, b.rank), a.key, b.key) = 1
    order by a.text, a.key
"""
"""Each text once, also if it was parsed in several modes; gold is compared with any mode."""

_SAME_EXAMPLES: Final = f"""
    {_INPUTS}, segments as (
        select split, example_id, unnest(parse_keys) as key,
            unnest(generate_series(1, len(parse_keys))) as segment
        from examples where dataset = $dataset
    ), placed as (select * from segments join inputs using (key))
    select distinct a.key, b.key, a.mode, b.mode
    from placed a join placed b using (split, lang, example_id, segment, characters)
    where a.parser = $first and b.parser = $second
    qualify row_number() over (
        partition by split, lang, example_id, segment, characters
        order by least(a.rank, b.rank), a.key, b.key) = 1
    order by all
"""

_FILTERS: Final = ("dataset", "lang")

Question = dict[str, str | None]

Pair = tuple[str, str, str, str]
"""Keys of two parses of one text, and their modes."""


@dataclass(frozen=True)
class Difference:
    """A text that the parsers analyse differently; ``las`` is F1 in per cent."""

    text: str
    first_key: str
    second_key: str
    las: float


Confusion = tuple[str | None, str | None, int]
"""Value of the first parser, value of the second parser, number of words."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of two parsers on the texts that both have parsed.

    Attributes:
        first, second: Fingerprints of the parsers.
        modes: Texts by the modes of the two parses, such as ``gold, pretokenized``.
        identical: Texts whose trees, tags and labels are the same.
        scores: By the names of `syntax.trees.scoring.METRICS`, with the first parser as gold.
        confusions: For ``upos`` and ``deprel``, the differing values of words with the same
            characters, the most frequent first.
        differences: The texts that differ most.
    """

    first: str
    second: str
    texts: int
    modes: dict[str, int]
    identical: int
    scores: dict[str, Score]
    confusions: dict[str, list[Confusion]]
    differences: list[Difference]

    def to_json(self) -> dict[str, Any]:
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
    """Compare two parsers, given by name or fingerprint, on the texts that both have parsed.

    Two parses are of one text if characters, mode and tokens are the same. Gold trees are compared
    with any parse of their characters. A text counts once: as tokens if there is such a pair, else
    as a sentence, else raw. If both have parsed ``dataset``, its segments are compared in any mode,
    each pair of parses once.
    """
    if shown < 0:
        raise SpecError(f"shown is {shown}; it must not be negative")
    ours, theirs = (store_parser(store, name) for name in (first, second))
    if ours == theirs:
        raise SpecError(f"{first!r} and {second!r} are one parser, {ours}; name two")
    datasets = {card.name for card, _ in store.features.tables()}
    if dataset is not None and dataset not in datasets:
        raise unknown_name("dataset", dataset, datasets, UnknownDatasetError)
    langs = [row[0] for row in store.sql("select distinct lang from parses").fetchall()]
    if lang is not None and lang not in langs:
        raise unknown_name("language of the store's parses", lang, langs, UnknownLanguageError)
    asked = {"first": ours, "second": theirs, "dataset": dataset, "lang": lang}
    pairs = _pairs(store, asked)
    if not pairs:
        raise SpecError(
            f"no text{_where(asked)} was parsed by both {first!r} and {second!r} in the same way: "
            f"the one {_modes_of(store, ours)}, the other {_modes_of(store, theirs)}; "
            f"{_way_out(store, asked)}"
        )
    return _compare(store, (ours, theirs), pairs, shown)


def _pairs(store: FeatureStore, asked: Question) -> list[Pair]:
    if asked["dataset"] is not None:
        query = """
            select count(distinct parser) from examples
            where dataset = $dataset and parser in ($first, $second)
                and ($lang is null or lang = $lang)
        """
        if store.sql(query, asked).fetchall() == [(2,)]:
            return store.sql(_SAME_EXAMPLES, asked).fetchall()
    return store.sql(_SAME_INPUTS, asked).fetchall()


def _way_out(store: FeatureStore, asked: Question) -> str:
    """A hint for parsers without common texts: filters that have some, or a backfill."""
    for question in _near(store, asked):
        if pairs := _pairs(store, question):
            return f"there are {len(pairs)}{_where(question) or ' without filters'}"
    return "backfill the texts of the one with the other, in the same mode"


def _near(store: FeatureStore, asked: Question) -> Iterator[Question]:
    """The question with fewer filters, and for each dataset that both have parsed."""
    given = tuple(name for name in _FILTERS if asked[name] is not None)
    for left_out in dict.fromkeys([*((name,) for name in given), given]):
        if left_out:
            yield {**asked, **dict.fromkeys(left_out)}
    query = """
        select dataset from examples where parser in ($first, $second)
        group by all having count(distinct parser) = 2 order by all
    """
    parsers = {name: asked[name] for name in ("first", "second")}
    for (dataset,) in store.sql(query, parsers).fetchall():
        yield {**asked, "dataset": dataset}


def _where(question: Question) -> str:
    """The filters of a question, such as `` with `dataset=xnli`, `lang=fr` ``; empty without."""
    given = [f"`{name}={question[name]}`" for name in _FILTERS if question[name] is not None]
    return f" with {', '.join(given)}" if given else ""


def _modes_of(store: FeatureStore, parser: str) -> str:
    query = "select mode, lang, count(*) from parses where parser = ? group by all order by all"
    rows = store.sql(query, [parser]).fetchall()
    return "read " + ", ".join(f"{count} texts as {mode} {lang}" for mode, lang, count in rows)


def _compare(
    store: FeatureStore, parsers: tuple[str, str], pairs: Sequence[Pair], shown: int
) -> Agreement:
    compared = ("form", "sentence_first_word", "head", "deprel", "upos")
    totals = dict.fromkeys(METRICS, Score(0, 0, 0))
    identical, tie = 0, count()
    confused: dict[str, Counter[tuple[Any, Any]]] = {column: Counter() for column in _TAGS}
    worst: list[tuple[float, int, Difference]] = []
    for first_key, second_key, ours, theirs in _parses(store, pairs):
        scores = evaluate(ours.sentences(), theirs.sentences())
        totals = {name: _sum(totals[name], scores[name]) for name in METRICS}
        identical += all(getattr(ours, name) == getattr(theirs, name) for name in compared)
        _confuse(confused, ours, theirs)
        difference = Difference(ours.text, first_key, second_key, scores["LAS"].f1)
        heapq.heappush(worst, (-difference.las, next(tie), difference))
        if len(worst) > shown:
            heapq.heappop(worst)
    listed = [difference for _, _, difference in sorted(worst, reverse=True)]
    named = (", ".join(dict.fromkeys(modes)) for _, _, *modes in pairs)
    return Agreement(
        first=parsers[0],
        second=parsers[1],
        texts=len(pairs),
        modes=dict(Counter(named).most_common()),
        identical=identical,
        scores=totals,
        confusions={column: _commonest(confused[column], shown) for column in _TAGS},
        differences=[difference for difference in listed if difference.las < 100.0],
    )


def _parses(store: FeatureStore, pairs: Sequence[Pair]) -> Iterator[tuple[str, str, Parse, Parse]]:
    for start in range(0, len(pairs), _BATCH):
        batch = pairs[start : start + _BATCH]
        records = store.parses.get_many([key for pair in batch for key in pair[:2]])
        for first, second, *_ in batch:
            yield first, second, records[first].parse, records[second].parse


def _sum(one: Score, other: Score) -> Score:
    aligned = None if other.aligned is None else (one.aligned or 0) + other.aligned
    return Score(
        one.gold + other.gold, one.system + other.system, one.correct + other.correct, aligned
    )


def _confuse(confused: dict[str, Counter[tuple[Any, Any]]], ours: Parse, theirs: Parse) -> None:
    places = _places(theirs)
    same = [(at, places[place]) for place, at in _places(ours).items() if place in places]
    for column, counts in confused.items():
        one, other = getattr(ours, column), getattr(theirs, column)
        counts.update((one[at], other[to]) for at, to in same if one[at] != other[to])


def _places(parse: Parse) -> dict[tuple[str, int, int], int]:
    """Words by form and characters, white space left out: texts may be spaced differently."""
    before = [0, *accumulate(not char.isspace() for char in parse.text)]
    words = zip(parse.form, parse.word_start, parse.word_end, strict=True)
    return {(form, before[start], before[end]): at for at, (form, start, end) in enumerate(words)}


def _commonest(counts: Counter[tuple[Any, Any]], shown: int) -> list[Confusion]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], *map(str, item[0])))
    return [(one, other, words) for (one, other), words in ordered[:shown]]
