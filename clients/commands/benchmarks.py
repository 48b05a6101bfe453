"""``parsebank benchmarks``: lists and checks files that can be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syntax.commands.tables import AsJson, print_table

if TYPE_CHECKING:
    from clients.benchmarks import Benchmark, Item
    from syntax.examples import Example, LabelSpec

benchmarks = typer.Typer(help="List, describe and check benchmark readers.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the benchmark.")]
PathOption = Annotated[Path | None, typer.Option(help="Folder or file of the benchmark.")]

_SHOWN = 10

_FILES = 5


@benchmarks.command("list")
def list_benchmarks(as_json: AsJson = False) -> None:
    """List the readers; `describe` shows details."""
    from clients.benchmarks import BENCHMARKS

    rows = [
        (name, tuple(reader.fields), tuple(label.name for label in reader.labels))
        for name, reader in BENCHMARKS.items()
    ]
    print_table(("name", "fields", "labels"), rows, as_json)


@benchmarks.command()
def describe(name: NameArgument, path: PathOption = None, as_json: AsJson = False) -> None:
    """Describe a reader; with a path, also list the splits and languages found there."""
    from clients.benchmarks import BENCHMARKS

    reader = BENCHMARKS[name]
    statements = [
        ("name", reader.name),
        ("fields", ", ".join(reader.fields)),
        *(("label", _described(label)) for label in reader.labels),
        ("modes", ", ".join(reader.modes)),
        ("langs", ", ".join(reader.langs) or "any"),
        ("files", reader.layout),
        ("encoding", ", else ".join(reader.encodings)),
        ("ids", reader.ids),
        *(("rejects", f"{reason}: {what}") for reason, what in reader.rejects.items()),
        *(("quirk", quirk) for quirk in reader.quirks),
        ("source", reader.source),
        ("licence", reader.licence),
    ]
    if path is not None or reader.bundled is not None:
        labels = reader.labels_of(path) if reader.names_in else ()
        statements += [("found", _described(label)) for label in labels]
        statements += [
            ("found", f"{part.split} {part.lang} ({_listed(part.files)})")
            for part in reader.parts(path)
        ]
    print_table(("what", "statement"), statements, as_json)


@benchmarks.command()
def check(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME | PATH]",
            help="Name of the reader. Default: the reader that fits the path.",
        ),
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="Read only these splits, as train,dev.")
    ] = None,
    lang: Annotated[list[str] | None, typer.Option(help="Only these languages, as en,fr.")] = None,
    path: PathOption = None,
    mode: Annotated[str | None, typer.Option(help="Mode, as in `parsebank backfill`.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read splits completely and count them, without a service.

    Exits with 1 if the reader rejects a record, and shows the first rejections, or if a part is
    empty.
    """
    from syntax.errors import InputError
    from syntax.lists import listed

    reader, path = _meant(name, path)
    labels, asked = reader.labels_of(path), reader.mode(mode)
    parts = [
        part
        for one_split in listed(split) or (None,)
        for one_lang in listed(lang) or (None,)
        for part in reader.chosen(path, one_split, one_lang)
    ]
    rejected = 0
    rows: list[tuple[str, str, str, str, int]] = []
    for part in parts:
        try:
            counts, wrong = _count(reader.items(part, asked), labels)
        except InputError as error:
            counts, wrong = {}, 1
            typer.echo(f"{error.error_type}: {error.message}", err=True)
        place = (reader.name, part.split, part.lang)
        rows += [(*place, title, count) for title, count in counts.items()]
        rejected += wrong
    print_table(("benchmark", "split", "lang", "what", "count"), rows, as_json)
    raise typer.Exit(int(rejected > 0))


def _meant(name: str | None, path: Path | None) -> tuple[Benchmark, Path | None]:
    """Reader, by a name or by a path, which may come in the name's place."""
    from clients.benchmarks import BENCHMARKS
    from clients.benchmarks.recognise import recognised
    from syntax.errors import SpecError

    if name is not None and path is None and "/" in name and not Path(name).exists():
        raise SpecError(f"there is no file or folder {name}")
    if name is not None and (name in BENCHMARKS or path is not None or not Path(name).exists()):
        return BENCHMARKS[name], path
    place = path if name is None else Path(name)
    if place is None:
        raise SpecError("check needs the name of a benchmark, a path, or both")
    return BENCHMARKS[recognised(place)], place


def _listed(files: Sequence[Path]) -> str:
    more = f" and {len(files) - _FILES:,} more" if len(files) > _FILES else ""
    return ", ".join(file.name for file in files[:_FILES]) + more


def _described(label: LabelSpec) -> str:
    names = ", ".join(label.names)
    if label.kind in ("class", "tags"):
        names = names or "as the files have them (see with --path)"
    return f"{label.name} ({label.kind})" + (f": {names}" if names else "")


def _count(items: Iterable[Item], labels: Sequence[LabelSpec]) -> tuple[dict[str, int], int]:
    from collections import Counter

    from syntax.examples import Rejection

    # Names are counted from nought, so that they are printed in the order of their ids.
    counts = Counter({"examples": 0} | {f"{x.name} {y}": 0 for x in labels for y in x.names})
    rejected = 0
    ids: set[str] = set()
    for item in items:
        if isinstance(item, Rejection):
            rejected += 1
            counts[f"rejected: {item.reason}"] += 1
            if rejected <= _SHOWN:
                typer.echo(f"{item.example_id}: {item.reason}: {item.message}", err=True)
        else:
            counts["examples"] += 1
            counts["repeated ids"] += item.example_id in ids
            ids.add(item.example_id)
            counts.update(title for label in labels for title in _titles(label, item))
            counts.update(f"repaired: {repair}" for repair in item.repairs)
    found = {title: count for title, count in counts.items() if count or title == "examples"}
    return found, rejected


def _titles(label: LabelSpec, example: Example) -> list[str]:
    value = example.labels[label.name]
    if value is None:
        return [f"{label.name}: none"]
    if isinstance(value, tuple):
        names = (x if isinstance(x, str) else x.label for x in value)
        return [f"{label.name} {name}".rstrip() for name in names]
    return [f"{label.name} {value}" if label.kind == "class" else label.name]
