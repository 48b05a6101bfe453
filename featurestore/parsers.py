"""Parsers by the names that people give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from syntax.errors import UnknownParserError
from syntax.registry import unknown_name

if TYPE_CHECKING:
    from featurestore.store import FeatureStore


def parsers_named(
    name: str,
    used: Sequence[str],
    described: Mapping[str, Mapping[str, Any]],
    where: str = "the store",
) -> list[str]:
    """The fingerprints that a name stands for, the one described last at the end.

    Args:
        name: Name of a parser, or the first digits of its fingerprint, six at least.
        used: Fingerprints to choose from.
        described: What parsers are, by fingerprint, in the order of description.
        where: Where they were used, for the message.

    Raises:
        UnknownParserError: None of them is called so.
    """
    names = {parser: described.get(parser, {}).get("name", parser) for parser in used}
    age = {parser: at for at, parser in enumerate(described)}
    chosen = [
        parser
        for parser in sorted(used, key=lambda parser: age.get(parser, -1))
        if names[parser] == name or (len(name) >= 6 and parser.startswith(name))
    ]
    if not chosen:
        known = list(dict.fromkeys(names.values()))
        raise unknown_name(f"parser of {where}", name, known, UnknownParserError)
    return chosen


def store_parsers(store: FeatureStore, name: str) -> list[str]:
    """Those of `parsers_named` that have parses in a store.

    Raises:
        UnknownParserError: The store has no parse by such a parser.
        StoreError: The store cannot be read.
    """
    from featurestore.sql.session import named_faults

    with named_faults():
        rows = store.sql("select distinct parser from parses order by all").fetchall()
    used = [str(parser) for (parser,) in rows]
    return parsers_named(name, used, store.fingerprints.all("parser"))
