"""Reports: ``parsebank store stats``, ``diff``, ``word-order``; copies: ``export``, ``noise``."""

from __future__ import annotations

from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import Annotated

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands.printing import Langs, Parsers, Version, Where, open_there, version_of
from featurestore.reports.word_order_types import Linkage, Missing
from syntax.commands.tables import AsForm, AsJson, print_json, print_record, print_rows, print_table


def stats(
    store: Where = DEFAULT_STORE,
    lang: Langs = None,
    parser: Parsers = None,
    as_json: AsJson = False,
) -> None:
    """Count sentences, lengths, depths, arity, projectivity, tags and relations, per parser."""
    from featurestore.reports.stats import parse_stats

    with open_there(store) as opened:
        found = parse_stats(opened, lang, parser)
    if as_json:
        print_json([group.to_json() for group in found])
        return
    columns = (
        *("lang", "parser", "sentences", "words", "length", "longest"),
        *("depth", "deepest", "arity", "widest", "projective"),
    )
    rows = [
        (
            *(group.lang, group.parser, group.sentences, group.words),
            *(round(group.length.mean, 1), group.length.largest),
            *(round(group.depth.mean, 1), group.depth.largest),
            *(round(group.arity.mean, 1), group.arity.largest),
            f"{group.projective:.1%}",
        )
        for group in found
    ]
    print_table(columns, rows)


def diff(
    first: Annotated[str, typer.Argument(help="Name or fingerprint of a parser.")],
    second: Annotated[str, typer.Argument(help="Name or fingerprint of another parser.")],
    store: Where = DEFAULT_STORE,
    dataset: Annotated[str | None, typer.Option(help="Only texts of this dataset.")] = None,
    lang: Annotated[str | None, typer.Option(help="Only this language.")] = None,
    shown: Annotated[int, typer.Option(min=0, help="Confusions and texts to show.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Compare two parsers on texts that both parsed."""
    from featurestore.reports.diff import Difference, parser_agreement

    with open_there(store) as opened:
        found = parser_agreement(opened, first, second, dataset=dataset, lang=lang, shown=shown)
    if as_json:
        print_json(found.to_json())
        return
    modes = {f"texts, {mode}": count for mode, count in found.modes.items()}
    print_record({"texts": found.texts, "identical": found.identical, **modes})
    scores = [(name, round(score.f1, 2)) for name, score in found.scores.items()]
    typer.echo()
    print_table(("metric", "F1"), scores)
    for column, confusions in found.confusions.items():
        typer.echo()
        print_table((f"{column} of {first}", f"{column} of {second}", "words"), confusions)
    typer.echo()
    columns = [column.name for column in fields(Difference)]
    print_table(columns, [astuple(difference) for difference in found.differences])


def word_order(
    store: Where = DEFAULT_STORE,
    types: Annotated[
        str,
        typer.Option(
            help="Number of dependency types to compare (the most frequent ones), or `published` "
            "for the 52 types of Ahmad et al. (2019)."
        ),
    ] = "52",
    missing: Annotated[
        Missing,
        typer.Option(
            help="What to do with types that are too rare in a language: leave them out of its "
            "comparisons (dropped), or count a share of 0.5 (as_published)."
        ),
    ] = "dropped",
    min_count: Annotated[
        int, typer.Option(min=1, help="Fewest dependents of a type in a language.")
    ] = 20,
    parser: Parsers = None,
    picture: Annotated[
        Path | None, typer.Option(help="Write the dendrogram (.svg, .png, .pdf).")
    ] = None,
    linkage: Annotated[
        Linkage | None,
        typer.Option(help="Linkage of the dendrogram. Default: single, as published."),
    ] = None,
    dependency_distances: Annotated[
        bool,
        typer.Option(
            "--dependency-distances",
            help="Print instead the percentage of words at each signed distance from their heads, "
            "per language.",
        ),
    ] = False,
    form: AsForm = "table",
    as_json: AsJson = False,
) -> None:
    """Compare languages by the direction of their dependencies."""
    from featurestore.reports import word_order as report

    form = "json" if as_json else form
    if dependency_distances:
        with open_there(store) as opened:
            table = report.dependency_distances(opened, parser=parser)
        print_rows(table.rows(), form=form)
        return
    if linkage is not None and picture is None:
        raise typer.BadParameter("--linkage is of the dendrogram; give --picture as well")
    number = int(types) if types.isdecimal() else 0
    if types != "published" and not number:
        raise typer.BadParameter(f"--types is {types}; give a number above 0, or published")
    with open_there(store) as opened:
        found = report.word_order(
            opened, types=number or "published", missing=missing, min_count=min_count, parser=parser
        )
    if picture is not None:
        found.draw(picture, linkage or "single")
    if found.left_out:
        langs = ", ".join(found.left_out)
        typer.echo(f"left out, with too few dependents to be compared: {langs}", err=True)
    content = found.to_json()
    if form == "json":
        print_json(content)
    else:
        rows = [{"distance": lang, **row} for lang, row in content["distances"].items()]
        print_rows(rows, form=form)


def export(
    path: Annotated[
        Path, typer.Argument(help="New folder for Parquet, or a file NAME.conllu or NAME.spacy.")
    ],
    dataset: Annotated[str, typer.Option(help="Name of the dataset.")],
    store: Where = DEFAULT_STORE,
    tokenizer: Annotated[str | None, typer.Option(help="Tokenizer, if there are several.")] = None,
    split: Annotated[str | None, typer.Option(help="Only this split.")] = None,
    lang: Langs = None,
    parser: Parsers = None,
    version: Version = None,
    as_json: AsJson = False,
) -> None:
    """Export a dataset: Parquet with a dataset card, or its parses as CoNLL-U or spaCy's DocBin."""
    from featurestore.dataset.dataset import EVERY
    from featurestore.reports.export import export_conllu, export_dataset, export_spacy, parse_keys

    with open_there(store) as opened:
        wanted = (tokenizer, split or EVERY, lang, version_of(version), parser)
        data = opened.dataset(dataset, *wanted)
        if path.suffix in (".conllu", ".spacy"):
            keys = list(dict.fromkeys(parse_keys(data)))
            if path.suffix == ".spacy":
                written = export_spacy(opened, keys, path)
            else:
                with path.open("x", encoding="utf-8") as file:
                    written = export_conllu(opened, keys, file)
            missing = len(keys) - written
            print_record({"path": str(path), "texts": written, "missing": missing}, as_json)
            if missing:
                typer.echo(
                    f"{missing} more are not there: their parses are not in the store", err=True
                )
        else:
            exported = export_dataset(data, path)
            counts = {"examples": exported.examples, "files": len(exported.files)}
            print_record({"path": str(path), **counts}, as_json)


def noise(
    dataset: Annotated[str, typer.Argument(help="Dataset to copy with noise.")],
    share: Annotated[
        float, typer.Option(help="Share of words whose head or relation is replaced, 0 to 1.")
    ],
    name: Annotated[str, typer.Option(help="Name of the new dataset.")],
    heads: Annotated[bool, typer.Option("--heads/--no-heads", help="Replace heads.")] = True,
    labels: Annotated[bool, typer.Option("--labels", help="Replace relations as well.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random choice.")] = 0,
    split: Annotated[str | None, typer.Option(help="Split, if there are several.")] = None,
    lang: Langs = None,
    tokenizer: Annotated[str | None, typer.Option(help="Tokenizer, if there are several.")] = None,
    parser: Parsers = None,
    store: Where = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Copy a dataset with a share of its heads or relations replaced at random."""
    from featurestore.reports.noise import add_noise
    from syntax.trees.noise import Noise

    chosen = (("heads", heads), ("labels", labels))
    wanted = Noise(share, tuple(kind for kind, asked in chosen if asked), seed)  # type: ignore[misc]
    with open_there(store) as opened:
        data = opened.dataset(dataset, tokenizer, split, lang, parser=parser)
        report = asdict(add_noise(opened, data, wanted, name))
    print_rows([{"dataset": name, **report}], as_json)
