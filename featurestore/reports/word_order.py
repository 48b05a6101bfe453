"""Word-order typology from dependency directions: vectors, distances, clusters.

A language is described by where its dependents stand: for each *type*, a triple (dependent's UPOS,
head's UPOS, relation), the share of dependents that follow their head. Languages are compared by
the Manhattan distance of these vectors, and clustered by it.

Source: Ahmad et al. (2019), "On Difficulties of Cross-Lingual Transfer with Order Differences: A
Case Study on Dependency Parsing", section 3 (52 frequent types). The released table has the mean
absolute difference, which is the Manhattan distance over the number of types; so do we.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from featurestore.dataset.parsers import store_parsers
from featurestore.sql.session import named_faults
from featurestore.store import FeatureStore
from syntax.errors import SpecError
from syntax.extras import missing_extra
from syntax.lists import ParserChoice

PUBLISHED_TYPES: Final = 52
"""Types in the paper's vectors."""

Type = tuple[str, str, str]
"""UPOS of the dependent, UPOS of the head, relation without its subtype."""

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


@dataclass(frozen=True)
class WordOrder:
    """Directions of dependency types in several languages.

    Attributes:
        langs: Languages (G).
        types: Types (T), the most frequent first.
        following: Share of the dependents that follow their head, NaN where a language has too
            few of the type. *Shape:* (G, T), float64.
        counts: Dependents of each type. *Shape:* (G, T), int64.
        left_out: Languages of the store with too few dependents to be compared with the others.
    """

    langs: tuple[str, ...]
    types: tuple[Type, ...]
    following: NDArray[np.float64]
    counts: NDArray[np.int64]
    left_out: tuple[str, ...] = ()

    def distances(self) -> NDArray[np.float64]:
        """Mean absolute difference over the types that two languages share. *Shape:* (G, G).

        Raises:
            SpecError: Two languages share no type.
        """
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

    def clusters(self) -> NDArray[np.float64]:
        """Average-linkage clustering, as ``scipy.cluster.hierarchy.linkage`` gives it.

        Raises:
            SpecError: There are fewer than two languages.
            MissingExtraError: scipy is not installed.
        """
        if len(self.langs) < 2:
            raise SpecError(f"a clustering needs two languages, and there are {len(self.langs)}")
        try:
            from scipy.cluster.hierarchy import linkage
            from scipy.spatial.distance import squareform
        except ImportError:
            raise missing_extra("clusters need scipy", "typology") from None
        linked: NDArray[np.float64] = linkage(squareform(self.distances()), method="average")
        return linked

    def draw(self, path: Path) -> None:
        """Write the dendrogram as a picture; the suffix says which kind (svg, png, pdf).

        Raises:
            SpecError, MissingExtraError: As `clusters`; also without matplotlib.
        """
        linked = self.clusters()
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise missing_extra("the picture needs matplotlib", "typology") from None
        from scipy.cluster.hierarchy import dendrogram

        figure = Figure(figsize=(6.0, 1.0 + 0.3 * len(self.langs)), layout="constrained")
        known = figure.canvas.get_supported_filetypes()
        if path.suffix[1:].lower() not in known:
            raise SpecError(f"{path} is no picture; end its name with one of .{', .'.join(known)}")
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


@named_faults()
def word_order(
    store: FeatureStore,
    *,
    types: int = PUBLISHED_TYPES,
    min_count: int = 20,
    parser: str | Collection[str] | None = None,
) -> WordOrder:
    """Directions in every language of the store.

    Args:
        store: The store; gold trees and parses count alike.
        types: How many types, the most frequent by their mean share over the languages.
        min_count: Dependents that a language needs for its share of a type to count.
        parser: Only parses by the parsers of this name or fingerprint; by default all. Of each
            language its own as ``"en:NAME,fr:NAME"``, or a mapping.

    A language that shares no type with another is left out, the one with the fewest types first.

    Raises:
        UnknownParserError: The store has no parse by such a parser.
        UnknownNameError: A parser is chosen for a language that the store lacks.
        SpecError: The store has no tagged parse, or too few; or no type was asked for.
        StoreError: The store cannot be read.
    """
    if types < 1:
        raise SpecError(f"types is {types}; it must be 1 or more")
    wanted = store_parsers(store, ParserChoice.read(parser))
    groups = [f"{lang} {one}" for lang, parsers in wanted.items() for one in parsers]
    rows = store.sql(_DIRECTIONS, {"groups": groups}).fetchall()
    if not rows:
        raise SpecError("the store has no parses with UPOS tags; parse or backfill something")
    langs = {lang: at for at, lang in enumerate(sorted({row[0] for row in rows}))}
    every = {kind: at for at, kind in enumerate(sorted({row[1:4] for row in rows}))}
    following, counts = (np.zeros((len(langs), len(every)), np.int64) for _ in range(2))
    for lang, dependent, head, deprel, after, total in rows:
        at = langs[lang], every[dependent, head, deprel]
        following[at], counts[at] = after, total
    kept, chosen = _comparable(counts, types, min_count)
    if not kept:
        raise SpecError(
            f"no language has {min_count} dependents of one type, the most are {counts.max()}; "
            "parse more text, or lower `min_count=`"
        )
    names, kinds = list(langs), list(every)
    own = counts[kept][:, chosen]
    return WordOrder(
        langs=tuple(names[at] for at in kept),
        types=tuple(kinds[at] for at in chosen),
        following=_shares(following[kept][:, chosen], own, min_count),
        counts=own,
        left_out=tuple(name for at, name in enumerate(names) if at not in kept),
    )


def _comparable(
    counts: NDArray[np.int64], types: int, min_count: int
) -> tuple[list[int], NDArray[np.intp]]:
    """Languages of which any two share a type, and the types most frequent in them."""
    kept = list(range(len(counts)))
    while kept:
        chosen = _most_frequent(counts[kept], types)
        enough = _enough(counts[kept][:, chosen], min_count)
        if (enough.astype(int) @ enough.T.astype(int)).all():
            return kept, chosen
        del kept[int(enough.sum(axis=1).argmin())]
    return [], np.empty(0, np.intp)


def _most_frequent(counts: NDArray[np.int64], types: int) -> NDArray[np.intp]:
    """Languages count alike, however much text each has."""
    share = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    return np.argsort(-share, kind="stable")[:types]


def _shares(
    following: NDArray[np.int64], counts: NDArray[np.int64], min_count: int
) -> NDArray[np.float64]:
    return np.where(_enough(counts, min_count), following / np.maximum(counts, 1), np.nan)


def _enough(counts: NDArray[np.int64], min_count: int) -> NDArray[np.bool_]:
    return counts >= max(min_count, 1)
