"""Choice of parsers by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from featurestore.tables.files import FileReader
from featurestore.tables.rows import RowIndex
from featurestore.tables.snapshot import in_partition
from syntax.errors import SpecError, UnknownLanguageError, UnknownParserError
from syntax.lists import ParserChoice
from syntax.registry import unknown_name

if TYPE_CHECKING:
    from featurestore.store import FeatureStore


def parsers_named(
    name: str,
    used: Sequence[str],
    described: Mapping[str, Mapping[str, Any]],
    where: str = "the store",
) -> list[str]:
    """The fingerprints of a name, or of the first six or more digits of a fingerprint, sorted."""
    names = {parser: described.get(parser, {}).get("name", parser) for parser in used}
    chosen = [
        parser
        for parser in sorted(used)
        if names[parser] == name or (len(name) >= 6 and parser.startswith(name))
    ]
    if not chosen:
        known = list(dict.fromkeys(names.values()))
        raise unknown_name(f"parser of {where}", name, known, UnknownParserError)
    return chosen


def parsers_by_language(
    choice: ParserChoice,
    used: Mapping[str, Collection[str]],
    described: Mapping[str, Mapping[str, Any]],
    where: str = "the store",
    requested: Collection[str] = (),
) -> dict[str, list[str]]:
    """The wanted parsers of each language; a language without any of them has no entry.

    Those of ``requested``, and those that the choice names, must have one.
    """
    choice.check(used)
    if choice.other is not None and not requested:
        parsers_named(choice.other, sorted(set().union(*used.values())), described, where)
    chosen = {lang: _of_language(choice.of(lang), of, described) for lang, of in used.items()}
    for lang in used:
        if not chosen[lang] and (lang in requested or lang in choice.each):
            raise _not_of(choice, lang, used, described, where)
    return {lang: parsers for lang, parsers in chosen.items() if parsers}


def _of_language(
    name: str | None, used: Collection[str], described: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    try:
        return list(used) if name is None else parsers_named(name, sorted(used), described)
    except UnknownParserError:
        return []


def _not_of(
    choice: ParserChoice,
    lang: str,
    used: Mapping[str, Collection[str]],
    described: Mapping[str, Mapping[str, Any]],
    where: str,
) -> UnknownParserError:
    each = {
        one: name if _of_language(name, of, described) else _short(min(of), of, described)
        for one, of in used.items()
        if (name := choice.of(one)) is not None
    }
    return UnknownParserError(
        f"{lang!r} of {where} was parsed by {called(used[lang], described)}, not by "
        f"{choice.of(lang)!r}; name one that did, as `parser={_spelled(ParserChoice(each), used)}`",
        name=choice.of(lang),
        lang=lang,
        known=sorted(used[lang]),
    )


def _not_in(
    part: tuple[str, str],
    choice: ParserChoice,
    used: Collection[str],
    described: Mapping[str, Mapping[str, Any]],
    where: str,
) -> UnknownParserError:
    split, lang = part
    return UnknownParserError(
        f"{split}/{lang} of {where} was parsed by {called(used, described)}, not by "
        f"{choice.of(lang)!r}; read each split by itself, as `split={split}`, with its own parser",
        name=choice.of(lang),
        split=split,
        lang=lang,
        known=sorted(used),
    )


def _spelled(choice: ParserChoice, langs: Collection[str]) -> str:
    """A choice as users write it; for a single language, the parser alone."""
    return str(choice) if len(langs) > 1 else next(iter(choice.each.values()))


def called(parsers: Iterable[str], described: Mapping[str, Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{described.get(parser, {}).get('name', 'parser')} ({parser[:12]})"
        for parser in sorted(parsers)
    )


def of_parsers(
    rows: RowIndex,
    choice: ParserChoice,
    described: Mapping[str, Mapping[str, Any]],
    where: str,
    langs: Collection[str],
) -> RowIndex:
    """The examples of the wanted parsers, of one parser in each split and language.

    No split may lose a language of ``langs``.
    """
    before = _by_part(rows)
    used: dict[str, set[str]] = {}
    for (_, lang), parsers in before.items():
        used.setdefault(lang, set()).update(parsers)
    wanted = parsers_by_language(choice, used, described, where, langs)
    chosen = [[parser in wanted.get(lang, ()) for parser in rows.parsers] for _, lang in rows.parts]
    kept = np.array(chosen, bool).reshape(rows.counts.shape)
    if rows.counts[~kept].any():
        rows = rows.select(kept[rows.part, rows.parser])
    parts = _by_part(rows)
    for part in before:
        if part not in parts and (part[1] in langs or part[1] in choice.each):
            raise _not_in(part, choice, before[part], described, where)
    several = {part: parsers for part, parsers in parts.items() if len(parsers) > 1}
    if not several:
        return rows
    (split, lang), parsers = next(iter(several.items()))
    each = {one: _short(of[0], of, described) for (_, one), of in several.items()}
    better = ParserChoice({**choice.each, **each}, choice.other)
    spelled = _spelled(better, {one for _, one in parts})
    raise SpecError(
        f"{split}/{lang} of {where} was parsed by {called(parsers, described)}; choose one of "
        f"them, by name or fingerprint, as `parser={spelled}`",
        parsers=parsers,
    )


def _by_part(rows: RowIndex) -> dict[tuple[str, str], list[str]]:
    used: dict[tuple[str, str], list[str]] = {}
    for part, parser in np.argwhere(rows.counts).tolist():
        used.setdefault(rows.parts[part], []).append(rows.parsers[parser])
    return used


def _short(parser: str, others: Collection[str], described: Mapping[str, Mapping[str, Any]]) -> str:
    """The name of a parser, or a prefix of its fingerprint that is unique for that name."""
    names = [described.get(one, {}).get("name") for one in others]
    name = described.get(parser, {}).get("name")
    return str(name) if name is not None and names.count(name) == 1 else parser[:12]


def dataset_parsers(store: FeatureStore, dataset: str, lang: str) -> list[str]:
    """Fingerprints of the parsers behind one language of a dataset, for all its tokenizers."""
    found: set[str] = set()
    for _, table in store.features.tables(dataset):
        reader = FileReader(table.location, schema=table.layout.schema)
        for file in in_partition(table.snapshot().files, {"lang": lang}):
            found.update(reader.columns(file.path, ["parser"])["parser"].unique().to_pylist())
    return sorted(found)


def store_parsers(
    store: FeatureStore, choice: ParserChoice, langs: Collection[str] = ()
) -> dict[str, list[str]]:
    """The wanted parsers of each language that have parses in the store."""
    from featurestore.sql.session import named_faults

    with named_faults():
        rows = store.sql("select distinct lang, parser from parses order by all").fetchall()
    used: dict[str, list[str]] = {}
    for lang, parser in rows:
        used.setdefault(lang, []).append(parser)
    for lang in langs:
        if lang not in used:
            raise unknown_name("language of the store's parses", lang, used, UnknownLanguageError)
    read = {lang: parsers for lang, parsers in used.items() if not langs or lang in langs}
    return parsers_by_language(choice, read, store.fingerprints.all("parser"), requested=langs)


def store_parser(store: FeatureStore, name: str) -> str:
    used = {one for parsers in store_parsers(store, ParserChoice()).values() for one in parsers}
    described = store.fingerprints.all("parser")
    parsers = parsers_named(name, sorted(used), described)
    if len(parsers) > 1:
        raise SpecError(
            f"{name!r} stands for several parsers of the store: {called(parsers, described)}; name "
            f"one by its fingerprint, such as {parsers[0][:12]}",
            parsers=parsers,
        )
    return parsers[0]
