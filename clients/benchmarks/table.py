"""Any table with named columns: the general door for data that no other reader knows.

`table_benchmark` reads files (JSON lines, CSV, TSV, Parquet, datasets saved by `datasets`);
`dataset_items` takes an object of the library `datasets`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from clients.benchmarks.base import ANY, Benchmark, Item, Names, Part, register
from clients.benchmarks.documents import guarded
from clients.benchmarks.hf import class_names, kind_of, plain_dataset
from clients.benchmarks.rows import ENDINGS, Rows, open_rows
from clients.benchmarks.tablecolumns import TableColumns
from clients.files import plain_path
from syntax.examples import DatasetSpec, LabelSpec, Mode

_LANG: Final = r"(?P<lang>[a-z]{2,3})"
_SHARD: Final = re.compile(
    rf"(?:{_LANG}/|data/)?(?P<split>\w+)-[0-9]+-of-[0-9]+\.parquet"
    r"|(?:(?P<saved>\w+)/)?data-[0-9]+-of-[0-9]+\.arrow"
)
_FILE: Final = re.compile(rf"(?P<split>\w+)(?:[.-]{_LANG})?(?:{'|'.join(map(re.escape, ENDINGS))})")
_OF_THE_LIBRARY: Final = frozenset({"dataset_dict.json", "dataset_info.json", "state.json"})


def _find(folder: Path) -> Sequence[Part]:
    """The parts by file names; the shards of a split and language are one part, in order."""
    shards: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in sorted((*folder.glob("*"), *folder.glob("*/*"))):
        if match := _SHARD.fullmatch(path.relative_to(folder).as_posix()):
            split = match["split"] or match["saved"] or ANY
            shards[split, match["lang"] or ANY].append(path)
    named = ((_FILE.fullmatch(plain_path(path).name), path) for path in folder.iterdir())
    return [
        *(Part(split, lang, tuple(files)) for (split, lang), files in shards.items()),
        *(
            Part(match["split"], match["lang"] or ANY, (path,))
            for match, path in named
            if match and path.name not in _OF_THE_LIBRARY
        ),
    ]


def _read(part: Part, mode: Mode, *, columns: TableColumns) -> Iterator[Item]:
    numbers = count(1)
    for path in part.files:
        yield from guarded(path, _items(path, part.split, mode, columns, numbers))


def _items(
    path: Path, split: str, mode: Mode, columns: TableColumns, numbers: Iterator[int]
) -> Iterator[Item]:
    yield from columns.items(partial(open_rows, path), numbers, split, mode)


def _names_in(parts: Sequence[Part], *, columns: TableColumns) -> Names:
    return columns.names(partial(open_rows, path) for part in parts for path in part.files)


_PLAIN: Final = TableColumns(("text",))

TABLE: Final = register(
    Benchmark(
        name="table",
        fields=_PLAIN.fields,
        labels=_PLAIN.labels,
        modes=_PLAIN.modes,
        layout=f"a file with named columns ({' '.join(ENDINGS)}), a folder of files "
        "{split}[-{lang}] with one of these endings, or a dataset saved by `datasets`",
        source="the user's own data",
        licence="as the data's",
        find=_find,
        read_part=partial(_read, columns=_PLAIN),
        ids="those of the column that you name, else `{split}-{row}`, counted from 1 over all "
        "files of the part",
        rejects={
            "example": "a row without one of the columns, or that breaks the format of its file",
            "label": "a label that is malformed, is no finite number in 32 bits, or has another "
            "name than its column allows; an answer of SQuAD's that is not at its offset, nor once "
            "near by",
            "no_label": "in a file in which another row has one: an empty class, or -1 where a "
            "column's numbers stand for names (`datasets`' mark of none)",
            "invalid_character": "bytes that are not UTF-8 in a text, a label or the id",
            "input": "a file that cannot be read, or whose header has a name twice",
        },
        quirks=(
            "by itself it reads the column `text`; others are chosen by --columns, --label and "
            "--id of `parsebank backfill`, or in Python (`table_benchmark`)",
            "CSV and TSV have a header; in TSV quotation marks are text; blank lines are no rows",
            "Parquet and Arrow need the extra `hf`",
            "a label that no row of a file has, as where its column is not there, is blind: the "
            "rows are kept without",
            "numbers of a `ClassLabel` become its names; a text is divided at spaces where the "
            "mode takes tokens",
        ),
        general=True,
    )
)


def table_benchmark(
    path: Path | None = None,
    *,
    fields: Sequence[str] = ("text",),
    labels: Sequence[LabelSpec] = (),
    columns: Mapping[str, str] | None = None,
    id: str | None = None,  # noqa: A002
    name: str = "table",
) -> Benchmark:
    """A benchmark of tables with these columns.

    Args:
        path: Where the files are, if `Benchmark.read` is to be called without.
        fields: Name of each segment.
        labels: Label columns. Classes and tags without names take those of the file's
            ``ClassLabel``, else all that occur.
        columns: The table's name of a field or label, where it is not the same.
        id: The column with the id; without one, rows are counted (``dev-17``). Nobody checks
            that ids differ.
        name: Name of the dataset.

    Raises:
        SpecError: A name occurs twice, or a label or column speaks of a field that is none.

    >>> nli = table_benchmark(
    ...     fields=("premise", "hypothesis"),
    ...     labels=(LabelSpec("label", "class"),),
    ...     columns={"premise": "sentence1", "hypothesis": "sentence2"},
    ...     id="pairID",
    ... )
    >>> nli.modes
    ('raw', 'sentence', 'pretokenized', 'retokenize')
    """
    chosen = TableColumns(tuple(fields), tuple(labels), dict(columns or {}), id)
    return replace(
        TABLE,
        name=name,
        fields=chosen.fields,
        labels=chosen.labels,
        modes=chosen.modes,
        read_part=partial(_read, columns=chosen),
        names_in=partial(_names_in, columns=chosen) if chosen.unnamed else None,
        bundled=path,
    )


def dataset_items(
    data: Any,
    *,
    split: str,
    lang: str,
    fields: Sequence[str] = ("text",),
    labels: Sequence[LabelSpec | str] = (),
    columns: Mapping[str, str] | None = None,
    id: str | None = None,  # noqa: A002
    name: str = "table",
    mode: str | None = None,
) -> tuple[DatasetSpec, Iterator[Item]]:
    """An object of the library `datasets` as a specification and examples, for `Client.backfill`.

    Args:
        data: A `datasets.Dataset`, or another of its kind that can be iterated more than once.
        split: The split that it is.
        lang: Its language.
        fields: Name of each segment.
        labels: Label columns; where a name alone is given, the feature of its column tells the
            kind: a ``ClassLabel`` is a class, a list of them tags, a float a float, all else a
            class.
        columns: The data's name of a field or label, where it is not the same.
        id: The column with the id; without one, rows are counted.
        name: Name of the dataset in the store.
        mode: How the segments are read; else ``raw``, or ``pretokenized`` with tags.

    Raises:
        SpecError: As `table_benchmark`; or the segments cannot be read in the mode; or the data
            is several splits.
    """
    data = plain_dataset(data)
    features, renamed = data.features or {}, dict(columns or {})
    specs = [
        LabelSpec(label, kind_of(features.get(renamed.get(label, label))))
        if isinstance(label, str)
        else label
        for label in labels
    ]
    reader = table_benchmark(fields=fields, labels=specs, columns=renamed, id=id, name=name)
    chosen = TableColumns(reader.fields, reader.labels, renamed, id)
    names = chosen.names([partial(_rows, data)]) if chosen.unnamed else {}
    known = tuple(replace(label, names=names.get(label.name, label.names)) for label in specs)
    spec = replace(reader, names_in=None, labels=known).spec(split, lang, mode=mode)
    return spec, chosen.items(partial(_rows, data), count(1), spec.split, spec.mode)


def _rows(data: Any) -> Rows:
    return Rows((partial(dict, row) for row in data), class_names(data))
