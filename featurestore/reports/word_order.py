"""Word-order typology: directions of dependencies, their distances, and clusters of languages.

A *type* is a triple (UPOS of the dependent, UPOS of the head, relation). A language is described
by the share of dependents of each type that follow their head. Two languages are compared by the
mean absolute difference of these shares, which is the Manhattan distance over the number of types,
and clustered by it.

Source: Ahmad et al. (2019), "On Difficulties of Cross-Lingual Transfer with Order Differences: A
Case Study on Dependency Parsing", section 3, and the first author's dissertation, chapter 3. They
count dependents *before* their head, which gives the same distances.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from featurestore.dataset.parsers import store_parsers
from featurestore.reports.word_order_types import (
    NEUTRAL_SHARE,
    PUBLISHED_TYPES,
    Linkage,
    Missing,
    Type,
)
from featurestore.sql.session import named_faults
from featurestore.store import FeatureStore
from syntax.errors import SpecError
from syntax.extras import missing_extra
from syntax.lists import ParserChoice

DISTANCES: Final = ("<-2", "-2", "-1", "1", "2", ">2")
"""Classes of signed distances in words, position of the dependent less that of its head."""

_DIRECTIONS: Final = """
    with placed as (
        select lang, upos, head, deprel, unnest(generate_series(1, len(form))) as i from sentences
        where lang || ' ' || parser in (select unnest($groups))
    )
    select lang, upos[i], upos[head[i]], split_part(deprel[i], ':', 1),
        count(*) filter (i > head[i]), count(*)
    from placed
    where head[i] > 0 and upos[i] is not null and upos[head[i]] is not null
        and deprel[i] is not null
    group by all
"""

_DISTANCES: Final = """
    with placed as (
        select lang, upos, head, unnest(generate_series(1, len(form))) as i from sentences
        where lang || ' ' || parser in (select unnest($groups))
    )
    select lang, greatest(-3, least(3, i - head[i])) as distance, count(*)
    from placed
    where coalesce(upos[i], '_') not in ('PUNCT', 'SYM')
    group by all
"""


@dataclass(frozen=True)
class WordOrder:
    """Directions of dependency types in several languages.

    Attributes:
        langs: Languages (G).
        types: Types (T), the most frequent first or in the published order.
        following: Share of the dependents that follow their head. Where a language has too few of
            the type it is NaN, or 0.5 with `missing="as_published"`. *Shape:* (G, T), float64.
        counts: Dependents of each type. *Shape:* (G, T), int64.
        left_out: Languages of the store with too few dependents to be compared with the others.
    """

    langs: tuple[str, ...]
    types: tuple[Type, ...]
    following: NDArray[np.float64]
    counts: NDArray[np.int64]
    left_out: tuple[str, ...] = ()

    def distances(self) -> NDArray[np.float64]:
        """Mean absolute difference over the types that two languages share. *Shape:* (G, G)."""
        differences = np.abs(self.following[:, None, :] - self.following[None, :, :])
        shared = ~np.isnan(differences)
        if not shared.any(axis=2).all():
            first, second = np.argwhere(~shared.any(axis=2))[0]
            raise SpecError(
                f"{self.langs[first]} and {self.langs[second]} share no dependency type; parse "
                "more text, or lower `min_count=`"
            )
        means: NDArray[np.float64] = np.nanmean(differences, axis=2)
        return means

    def clusters(self, linkage: Linkage = "single") -> NDArray[np.float64]:
        """Clusters, as ``scipy.cluster.hierarchy.linkage`` gives them. *Shape:* (G - 1, 4)."""
        if linkage not in get_args(Linkage):
            raise SpecError(
                f"`linkage={linkage}` is unknown; it is one of {', '.join(get_args(Linkage))}"
            )
        if len(self.langs) < 2:
            raise SpecError(f"a clustering needs two languages, and there are {len(self.langs)}")
        try:
            from scipy.cluster import hierarchy
            from scipy.spatial.distance import squareform
        except ImportError:
            raise missing_extra("clusters need scipy", "typology") from None
        linked: NDArray[np.float64] = hierarchy.linkage(squareform(self.distances()), linkage)
        return linked

    def draw(self, path: Path, linkage: Linkage = "single") -> None:
        """Write the dendrogram of `clusters` as a picture; the suffix chooses svg, png or pdf."""
        linked = self.clusters(linkage)
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise missing_extra("the picture needs matplotlib", "typology") from None
        from scipy.cluster.hierarchy import dendrogram

        figure = Figure(figsize=(6.0, 1.0 + 0.3 * len(self.langs)), layout="constrained")
        known = figure.canvas.get_supported_filetypes()
        if path.suffix[1:].lower() not in known:
            raise SpecError(
                f"{path} is not a picture; end its name with one of .{', .'.join(known)}"
            )
        axes = figure.add_subplot()
        dendrogram(linked, labels=list(self.langs), orientation="left", ax=axes)
        axes.set_xlabel("mean absolute difference of directions")
        figure.savefig(path)

    def to_json(self) -> dict[str, Any]:
        """Vectors and distances as plain JSON; ``null`` where a language has too few of a type."""
        shares = {
            lang: [None if np.isnan(share) else round(float(share), 4) for share in row]
            for lang, row in zip(self.langs, self.following, strict=True)
        }
        distances = {
            lang: dict(zip(self.langs, map(float, row.round(4)), strict=True))
            for lang, row in zip(self.langs, self.distances(), strict=True)
        }
        found = {"types": self.types, "following": shares, "distances": distances}
        return {**found, "left_out": self.left_out}


@dataclass(frozen=True)
class DependencyDistances:
    """Distances of dependents from their heads, in several languages.

    Attributes:
        counts: Words of each class of `DISTANCES`. *Shape:* (G, 6), int64.
    """

    langs: tuple[str, ...]
    counts: NDArray[np.int64]

    def percentages(self) -> NDArray[np.float64]:
        """Share of each class in the words of a language, in per cent. *Shape:* (G, 6)."""
        shares: NDArray[np.float64] = 100 * self.counts / self.counts.sum(axis=1, keepdims=True)
        return shares

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"lang": lang, **dict(zip(DISTANCES, row, strict=True)), "words": words}
            for lang, row, words in zip(
                self.langs,
                self.percentages().round(2).tolist(),
                self.counts.sum(axis=1).tolist(),
                strict=True,
            )
        ]


@named_faults()
def word_order(
    store: FeatureStore,
    *,
    types: int | Literal["published"] = len(PUBLISHED_TYPES),
    missing: Missing = "dropped",
    min_count: int = 20,
    parser: str | Collection[str] | None = None,
) -> WordOrder:
    """Directions of dependencies in every language of the store, in gold trees and parses alike.

    A language that shares no type with another is left out, the one with the fewest types first;
    with ``missing="as_published"`` only a language without any type is.

    Args:
        store: The store.
        types: Number of types, the most frequent by their mean share over the languages, or
            ``"published"`` for `PUBLISHED_TYPES`.
        missing: Treatment of a type of which a language has fewer than ``min_count`` dependents.
        min_count: Dependents that a language needs for its share of a type to count.
        parser: As in `FeatureStore.dataset`; by default all.
    """
    if types != "published" and (not isinstance(types, int) or types < 1):
        raise SpecError(f"types is {types}; it must be 1 or more, or published")
    if missing not in get_args(Missing):
        raise SpecError(f"`missing={missing}` is unknown; it is dropped or as_published")
    rows = store.sql(_DIRECTIONS, {"groups": _groups(store, parser)}).fetchall()
    if not rows:
        raise SpecError("the store has no parses with UPOS tags; parse or backfill something")
    langs = {lang: at for at, lang in enumerate(sorted({row[0] for row in rows}))}
    fixed = PUBLISHED_TYPES if types == "published" else ()
    # The published types are the first columns.
    others = sorted({row[1:4] for row in rows} - set(fixed))
    every = {kind: at for at, kind in enumerate([*fixed, *others])}
    following, counts = (np.zeros((len(langs), len(every)), np.int64) for _ in range(2))
    for lang, dependent, head, deprel, after, total in rows:
        at = langs[lang], every[dependent, head, deprel]
        following[at], counts[at] = after, total
    number = types if isinstance(types, int) else None
    kept, chosen = _comparable(counts, number, min_count, missing)
    if not kept:
        most = counts[:, : len(fixed) or None].max()
        raise SpecError(
            f"no language has {min_count} dependents of one type, the most are {most}; "
            "parse more text, or lower `min_count=`"
        )
    names, kinds = list(langs), list(every)
    own = counts[kept][:, chosen]
    unknown = NEUTRAL_SHARE if missing == "as_published" else np.nan
    shares = following[kept][:, chosen] / np.maximum(own, 1)
    return WordOrder(
        langs=tuple(names[at] for at in kept),
        types=tuple(kinds[at] for at in chosen),
        following=np.where(_enough(own, min_count), shares, unknown),
        counts=own,
        left_out=tuple(name for at, name in enumerate(names) if at not in kept),
    )


@named_faults()
def dependency_distances(
    store: FeatureStore, *, parser: str | Collection[str] | None = None
) -> DependencyDistances:
    """Relative frequency of the distances between dependents and heads, by language.

    The distance is the position of the dependent less that of its head, in syntactic words. A root
    hangs from position 0, before the first word of its sentence. Words with UPOS PUNCT or SYM do
    not count as dependents. Source: the dissertation's Table 3.4.
    """
    rows = store.sql(_DISTANCES, {"groups": _groups(store, parser)}).fetchall()
    if not rows:
        raise SpecError("the store has no parses; parse or backfill something")
    langs = {lang: at for at, lang in enumerate(sorted({row[0] for row in rows}))}
    counts = np.zeros((len(langs), len(DISTANCES)), np.int64)
    for lang, distance, total in rows:
        counts[langs[lang], distance + 3 - (distance > 0)] = total
    return DependencyDistances(tuple(langs), counts)


def _groups(store: FeatureStore, parser: str | Collection[str] | None) -> list[str]:
    """The chosen parsers, each as its language and fingerprint with a space between."""
    wanted = store_parsers(store, ParserChoice.read(parser))
    return [f"{lang} {one}" for lang, parsers in wanted.items() for one in parsers]


def _comparable(
    counts: NDArray[np.int64], types: int | None, min_count: int, missing: Missing
) -> tuple[list[int], NDArray[np.intp]]:
    """Rows of languages that can be compared, and columns of the types to compare them by.

    The published types (``types=None``) are the first columns of ``counts`` (G, T).
    """
    kept = list(range(len(counts)))
    while kept:
        if types is None:
            chosen = np.arange(len(PUBLISHED_TYPES))
        else:
            # Languages count alike, however much text each has.
            share = (counts[kept] / counts[kept].sum(axis=1, keepdims=True)).mean(axis=0)
            chosen = np.argsort(-share, kind="stable")[:types]
        enough = _enough(counts[kept][:, chosen], min_count).astype(int)
        known = enough.sum(axis=1)
        if (known if missing == "as_published" else enough @ enough.T).all():
            return kept, chosen
        del kept[int(known.argmin())]
    return [], np.empty(0, np.intp)


def _enough(counts: NDArray[np.int64], min_count: int) -> NDArray[np.bool_]:
    return counts >= max(min_count, 1)
