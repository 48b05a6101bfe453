"""Parts of a benchmark for a command, and their reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast, get_args

from syntax.errors import SpecError
from syntax.examples import LabelKind, LabelSpec
from syntax.lists import listed

if TYPE_CHECKING:
    from clients.benchmarks import Benchmark

ALL: Final = "all"


def wanted_parts(
    reader: Benchmark, path: Path | None, splits: Sequence[str], langs: Sequence[str]
) -> list[tuple[str, str]]:
    """Split and language of each part, once; named parts are not looked for here."""
    found = [
        part
        for split in listed(splits)
        for lang in listed(langs)
        for part in _parts(reader, path, split, lang)
    ]
    wanted = list(dict.fromkeys(found))
    _check_shared(reader, path, wanted)
    return wanted


def _check_shared(reader: Benchmark, path: Path | None, wanted: list[tuple[str, str]]) -> None:
    """Refuse several languages of a file that names none: each text would be parsed in each."""
    from clients.benchmarks import ANY

    langs = list(dict.fromkeys(lang for _, lang in wanted))
    if len(langs) < 2 or path is None or not path.exists():
        return
    if any(part.lang == ANY for part in reader.parts(path)):
        first, second, *_ = langs
        raise SpecError(
            f"{path} does not say in which language it is, so that each of its texts would be "
            f"taken for {' and for '.join(langs)}; name one. Where columns of a table differ in "
            f"language, backfill those of {first} with `lang={first}`, then those of {second} with "
            f"`lang={second}`, under the same names of fields, and cross the two"
        )


def _parts(reader: Benchmark, path: Path | None, split: str, lang: str) -> list[tuple[str, str]]:
    from clients.benchmarks import ANY

    if ALL not in (split, lang):
        return [(split, lang)]
    chosen = reader.chosen(path, None if split == ALL else split, None if lang == ALL else lang)
    named = [
        (
            part.split if split == ALL else split,
            part.lang if lang == ALL else lang,
        )
        for part in chosen
    ]
    for part in named:
        if ANY in part:
            what = "split" if part[0] == ANY else "language"
            raise SpecError(
                f"the files of {reader.name} do not say which {what} they are; name it instead "
                f"of {ALL!r}"
            )
    return named


def chosen_reader(
    name: str,
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    id_column: str | None = None,
    *,
    whole_files: bool = False,
    dev_share: float | None = None,
) -> Benchmark:
    """A reader by its name, as the options of a command change it.

    Columns are ``FIELD=COLUMN``, or the column alone; labels ``LABEL[:KIND[:FIELD]][=COLUMN]``, by
    default a class, and about the first field. Without ``dev_share`` splits are left to the files.
    """
    from clients.benchmarks.base import with_dev_share

    reader = _by_name(name, columns, labels, id_column)
    if whole_files:
        reader = _of_whole_files(reader)
    return reader if dev_share is None else with_dev_share(reader, dev_share)


def _of_whole_files(reader: Benchmark) -> Benchmark:
    from clients.benchmarks.text import WHOLE_FILES

    if reader.name != WHOLE_FILES.name:
        raise SpecError(f"--whole-files is for the reader `text`, not for {reader.name}")
    return WHOLE_FILES


def _by_name(
    name: str, columns: Sequence[str], labels: Sequence[str], id_column: str | None
) -> Benchmark:
    from clients.benchmarks import BENCHMARKS

    reader = BENCHMARKS[name]
    if not (columns or labels or id_column):
        return reader
    if name != "table":
        raise SpecError(f"--columns, --label and --id are for the reader `table`, not for {name}")
    from clients.benchmarks.table import table_benchmark

    parted = (column.partition("=") for column in columns or ("text",))
    renamed = {field: column or field for field, _, column in parted}
    specs = [_label(label) for label in labels]
    return table_benchmark(
        fields=tuple(renamed),
        labels=[spec for spec, _ in specs],
        columns=renamed | {spec.name: column for spec, column in specs},
        id=id_column,
    )


def _label(text: str) -> tuple[LabelSpec, str]:
    described, _, column = text.partition("=")
    label, _, about = described.partition(":")
    kind, _, field = about.partition(":")
    if kind and kind not in get_args(LabelKind):
        raise SpecError(
            f"label {label!r} has the kind {kind!r}; expected one of "
            f"{', '.join(get_args(LabelKind))}"
        )
    return LabelSpec(label, cast(LabelKind, kind or "class"), field=field or None), column or label
