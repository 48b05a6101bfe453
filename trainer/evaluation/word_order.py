"""Zero-shot parsing beside word order: does a parser lose more where the order differs more?

Source: Ahmad et al. (2019), section 4, and the first author's dissertation, section 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scipy import stats

from syntax.errors import SpecError
from trainer.results import part_name, table, write_json

if TYPE_CHECKING:
    from featurestore import FeatureStore
    from trainer.evaluation.transfer import TransferTable

NORMAL_95: Final = 1.959964
"""Standard deviations on each side that hold 95 % of a normal distribution."""


@dataclass(frozen=True, slots=True)
class ParsedLanguage:
    """The scores of one language.

    Attributes:
        long_sentences: Sentences that are too long to be scored.
        uas, las: Without punctuation and symbols, relations without subtypes; in per cent.
        distance: Of its word order from the source's; None where the store has too few trees.
        loss: Mean of UAS and LAS of the source, less that of the language, in points.
    """

    lang: str
    sentences: int
    long_sentences: int
    uas: float
    las: float
    distance: float | None
    loss: float


@dataclass(frozen=True, slots=True)
class Correlation:
    """Correlation of distance and loss over languages, the source left out.

    Attributes:
        interval: The 95 % of ``pearson`` by Fisher's transformation; None of fewer than four
            languages.
        spearman: Of ranks.
    """

    languages: int
    pearson: float
    interval: tuple[float, float] | None
    spearman: float


@dataclass(frozen=True, slots=True)
class WordOrderTable:
    """Scores, distances and losses of languages.

    Attributes:
        source: The language of the training data.
        languages: The source first, then by distance.
        correlation: None of fewer than three languages with a distance.
    """

    dataset: str
    split: str
    source: str
    languages: Sequence[ParsedLanguage]
    correlation: Correlation | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def title(self) -> str:
        return f"{self.dataset}, {self.split}: word order and transfer from {self.source}"

    def header(self) -> tuple[str, ...]:
        return ("language", "sentences", "too long", "UAS", "LAS", "distance", "loss")

    def rows(self) -> list[tuple[str, ...]]:
        """The languages as text, then the correlation."""
        rows: list[tuple[str, ...]] = [
            (
                *(one.lang, str(one.sentences), str(one.long_sentences)),
                *(f"{one.uas:.2f}", f"{one.las:.2f}"),
                "" if one.distance is None else f"{one.distance:.3f}",
                f"{one.loss:.2f}",
            )
            for one in self.languages
        ]
        if (found := self.correlation) is not None:
            low, high = found.interval or (math.nan, math.nan)
            between = f" ({low:.2f} to {high:.2f})" if found.interval else ""
            blank = ("",) * 4
            rows.append(("Pearson", str(found.languages), *blank, f"{found.pearson:.2f}{between}"))
            rows.append(("Spearman", str(found.languages), *blank, f"{found.spearman:.2f}"))
        return rows

    def markdown(self) -> str:
        return f"# {self.title()}\n\n{table(self.header(), self.rows())}\n"


def word_order_table(
    transfer: TransferTable,
    store: FeatureStore,
    *,
    parser: str | None = None,
    min_count: int = 20,
) -> WordOrderTable:
    """Scores of a parser beside the distance of each language's word order from the source's.

    Distances are over the published types, with 0.5 for a type that a language has fewer than
    ``min_count`` dependents of (`featurestore.reports.word_order`). All trees of the store count,
    unless a parser is named.
    """
    from featurestore.reports.word_order import word_order

    scores = {lang: of.to_json() for lang, of in transfer.scores.items()}
    sources = [lang for lang in transfer.sources if lang in scores]
    if len(sources) != 1:
        raise SpecError(
            f"losses are counted from one source, and the scores have {len(sources)} of "
            f"{', '.join(transfer.sources)}; evaluate on the language of the training data too"
        )
    if any("uas_no_punct" not in of for of in scores.values()):
        raise SpecError("the scores have no UAS; take a run of a parser")
    order = word_order(
        store, types="published", missing="as_published", min_count=min_count, parser=parser
    )
    (source,) = sources
    distances: dict[str, float] = {}
    if source in order.langs:
        row = order.distances()[order.langs.index(source)]
        distances = dict(zip(order.langs, row.tolist(), strict=True))
    languages = [_language(lang, scores, source, distances.get(lang)) for lang in scores]
    languages.sort(key=lambda one: (one.lang != source, one.distance is None, one.distance or 0))
    known = [one for one in languages if one.lang != source and one.distance is not None]
    return WordOrderTable(
        transfer.dataset, transfer.split, source, languages, correlation_of(known)
    )


def correlation_of(languages: Sequence[ParsedLanguage]) -> Correlation | None:
    """Correlation of distance and loss; None of fewer than three languages, or of equal values."""
    distances = [float(one.distance or 0) for one in languages]
    losses = [one.loss for one in languages]
    if (found := correlate(distances, losses)) is None:
        return None
    (pearson, spearman), interval = found, None
    if len(languages) > 3 and abs(pearson) < 1:
        middle, width = math.atanh(pearson), NORMAL_95 / math.sqrt(len(languages) - 3)
        interval = (math.tanh(middle - width), math.tanh(middle + width))
    return Correlation(len(languages), pearson, interval, spearman)


def correlate(distances: Sequence[float], losses: Sequence[float]) -> tuple[float, float] | None:
    """Pearson's and Spearman's; None of fewer than three pairs, or of equal values."""
    if len(distances) < 3 or len(set(distances)) == 1 or len(set(losses)) == 1:
        return None
    pearson = float(stats.pearsonr(distances, losses).statistic)
    return pearson, float(stats.spearmanr(distances, losses).statistic)


def write_word_order(shown: WordOrderTable, folder: Path) -> Path:
    """Write ``word-order-SPLIT.json`` and ``.md``; gives the JSON file."""
    path = folder / f"word-order-{part_name(folder, shown.dataset, shown.split)}.json"
    write_json(path, shown.to_json())
    path.with_suffix(".md").write_text(shown.markdown(), "utf-8")
    return path


def _language(
    lang: str, scores: Mapping[str, Mapping[str, Any]], source: str, distance: float | None
) -> ParsedLanguage:
    own = scores[lang]
    return ParsedLanguage(
        lang=lang,
        sentences=own["examples"],
        long_sentences=own.get("long_sentences", 0),
        uas=100 * own["uas_no_punct"],
        las=100 * own["las_no_punct"],
        distance=distance,
        loss=_mean(scores[source]) - _mean(own),
    )


def _mean(scores: Mapping[str, Any]) -> float:
    """The paper's evaluation score, in per cent."""
    return 50.0 * float(scores["uas_no_punct"] + scores["las_no_punct"])
