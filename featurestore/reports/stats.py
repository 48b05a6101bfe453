"""Statistics of the parses, by language and parser."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.dataset.parsers import store_parsers
from featurestore.sql.session import named_faults
from featurestore.store import FeatureStore
from featurestore.tables.encode.columns import numpy_of
from syntax.lists import ParserChoice, listed
from syntax.shapes import TreeShapes, tree_shapes

_BATCH: Final = 50_000


@dataclass(frozen=True)
class Distribution:
    """Distribution of a number over sentences."""

    mean: float
    median: float
    p99: float
    largest: int

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Distribution:
        median, p99 = np.quantile(values, (0.5, 0.99), method="inverted_cdf")
        return cls(float(values.mean()), float(median), float(p99), int(values.max()))


@dataclass(frozen=True)
class ParseStats:
    """The parses of one language by one parser.

    Attributes:
        parser: Name of the parser, or its fingerprint if it has no description.
        length: Words of a sentence.
        depth: Edges from the root to the deepest word of a sentence.
        arity: Largest number of dependents of a word of a sentence.
        projective: Share of the sentences without crossing arcs.
        upos, deprels: Words by tag and by relation, the most frequent first; ``_`` for none.
    """

    lang: str
    parser: str
    fingerprint: str
    sentences: int
    words: int
    length: Distribution
    depth: Distribution
    arity: Distribution
    projective: float
    upos: dict[str, int]
    deprels: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@named_faults()
def parse_stats(
    store: FeatureStore,
    lang: str | Collection[str] | None = None,
    parser: str | Collection[str] | None = None,
) -> list[ParseStats]:
    """Statistics by language and parser, which are chosen as in `FeatureStore.dataset`."""
    described = store.fingerprints.all("parser")
    names = {key: content.get("name", key) for key, content in described.items()}
    groups = store.sql("select distinct lang, parser from parses order by all").fetchall()
    wanted = store_parsers(store, ParserChoice.read(parser), listed(lang))
    found = [group for group in groups if group[1] in wanted.get(group[0], ())]
    return [_group(store, of, by, names.get(by, by)) for of, by in found]


def _group(store: FeatureStore, lang: str, parser: str, name: str) -> ParseStats:
    shapes = list(_shapes(store, lang, parser))
    length, depth, arity, crossing = (
        np.concatenate([getattr(shape, field) for shape in shapes])
        for field in ("length", "depth", "arity", "crossing")
    )
    return ParseStats(
        lang=lang,
        parser=name,
        fingerprint=parser,
        sentences=len(length),
        words=int(length.sum()),
        length=Distribution.of(length),
        depth=Distribution.of(depth),
        arity=Distribution.of(arity),
        projective=float((crossing == 0).mean()),
        upos=_counts(store, "upos", lang, parser),
        deprels=_counts(store, "deprel", lang, parser),
    )


def _shapes(store: FeatureStore, lang: str, parser: str) -> Iterator[TreeShapes]:
    query = "select head from sentences where lang = ? and parser = ?"
    for batch in store.sql(query, [lang, parser]).to_arrow_reader(_BATCH):
        heads: pa.ListArray = batch.column("head")
        offsets = numpy_of(heads.offsets)
        yield tree_shapes(numpy_of(heads.flatten()), offsets - offsets[0])


def _counts(store: FeatureStore, column: str, lang: str, parser: str) -> dict[str, int]:
    query = f"""
        select coalesce({column}, '_') as tag, count(*) as n from words
        where lang = ? and parser = ? group by tag order by n desc, tag
    """
    return dict(store.sql(query, [lang, parser]).fetchall())
