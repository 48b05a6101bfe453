"""Tables with named columns: the general reader for data that no other reader knows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from clients.benchmarks.base import ANY, Benchmark, Item, Names, Part, attempt, register, rejection
from clients.benchmarks.documents import guarded
from clients.benchmarks.table_files import (
    ENDINGS,
    Row,
    Rows,
    class_names,
    has_header,
    kind_of,
    open_rows,
    plain_dataset,
)
from clients.benchmarks.table_values import (
    WITH_TOKENS,
    NameSearch,
    is_missing,
    label_of,
    named,
    segment_of,
)
from clients.files import plain_path
from syntax.errors import ExampleError, InputError, LabelError, SpecError
from syntax.examples import DatasetSpec, Example, LabelSpec, LabelValue, Mode
from syntax.labels import field_of

_NAMED: Final = frozenset({"class", "spans", "tags"})


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Columns of a table with the segments, labels and id of an example.

    Attributes:
        columns: Column of a field or label, if its name differs.
        id: Column of the id; without one, rows are numbered.
    """

    fields: tuple[str, ...]
    labels: tuple[LabelSpec, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    id: str | None = None

    def __post_init__(self) -> None:
        names = [*self.fields, *(label.name for label in self.labels)]
        if not self.fields or len(set(names)) < len(names):
            raise SpecError(f"fields and labels are {names}; expected a field, and each name once")
        unknown = [name for name in self.columns if name not in names]
        unknown += [x.field for x in self.labels if x.field and x.field not in self.fields]
        if unknown:
            raise SpecError(f"{unknown[0]!r} is no field or label; those are {', '.join(names)}")

    @property
    def modes(self) -> tuple[Mode, ...]:
        tagged = any(label.kind == "tags" for label in self.labels)
        return WITH_TOKENS if tagged else ("raw", "sentence", *WITH_TOKENS)

    @property
    def unnamed(self) -> list[LabelSpec]:
        return [label for label in self.labels if label.kind in _NAMED and not label.names]

    def column(self, name: str) -> str:
        return self.columns.get(name, name)

    def items(
        self, open_table: Callable[[], Rows], numbers: Iterator[int], split: str, mode: Mode
    ) -> Iterator[Item]:
        """Items of a table; a label that no row has is ``None`` in all examples."""
        blind = self._unlabelled(open_table)
        rows = open_table()
        for make_row, number in zip(rows.rows, numbers, strict=False):
            counted = f"{split}-{number}"
            try:
                row = make_row()
            except InputError as error:
                yield rejection(counted, error)
                continue
            example_id = self._id(row) or counted
            yield attempt(example_id, self._example, row, mode, rows.names, blind)

    def _unlabelled(self, open_table: Callable[[], Rows]) -> frozenset[str]:
        missing = {label.name: label for label in self.labels}
        rows = open_table().rows if missing else iter(())
        with suppress(InputError):  # reported when the rows are read
            for make_row in rows:
                with suppress(InputError):
                    row = make_row()
                    missing = {
                        name: label
                        for name, label in missing.items()
                        if is_missing(label, row.get(self.column(name)))
                    }
                if not missing:
                    break
        return frozenset(missing)

    def check_file(self, path: Path) -> None:
        """Refuse a file without a column of texts or ids; it may lack labels, as blind sets do."""
        wanted = [*map(self.column, self.fields), *([self.id] if self.id else [])]
        found: dict[str, None] = {}
        with suppress(InputError):  # reported when the rows are read
            for make_row in open_rows(path).rows:
                with suppress(InputError):
                    found.update(dict.fromkeys(make_row()))
                if has_header(path) or found.keys() >= set(wanted):
                    break
        missing = [column for column in wanted if column not in found]
        if found and missing:
            raise SpecError(
                f"{path} has no column {missing[0]!r}; its columns are {', '.join(found)}: say "
                "which hold the texts, as `columns=A,B`, and which the id, as `id_column=C`",
                known=list(found),
            )

    def names(self, tables: Iterable[Callable[[], Rows]]) -> Names:
        """Names of unnamed labels: those that the tables list, else all that occur."""
        search = NameSearch({label: self.column(label.name) for label in self.unnamed})
        for open_table in tables:
            search.add(open_table)
        return search.names()

    def _id(self, row: Row) -> str:
        value = None if self.id is None else row.get(self.id)
        return "" if value is None or isinstance(value, (list, dict)) else str(value)

    def _example(
        self,
        example_id: str,
        row: Row,
        mode: Mode,
        listed: Mapping[str, tuple[str, ...]],
        blind: frozenset[str],
    ) -> Example:
        self._check(row, example_id, blind)
        segments = tuple(
            segment_of(row[self.column(name)], mode, f"{name} of {example_id}")
            for name in self.fields
        )
        labels: dict[str, LabelValue | None] = dict.fromkeys(sorted(blind))
        repairs: tuple[str, ...] = ()
        for label in (label for label in self.labels if label.name not in blind):
            column = self.column(label.name)
            names = listed.get(column, label.names)
            where = f"{label.name} of {example_id}"
            text = ""
            if label.kind == "spans":
                self._check_spacing(row, label, mode, where)
                segment = segments[field_of(label, self.fields)]
                text = " ".join(segment.tokens or ()) if segment.text is None else segment.text
            value = named(label, row[column], names, where) if column in listed else row[column]
            labels[label.name], repaired = label_of(label, value, names, where, text)
            repairs += repaired
        return Example(example_id, segments, labels, repairs)

    def _check_spacing(self, row: Row, label: LabelSpec, mode: Mode, where: str) -> None:
        text = row[self.column(label.field or self.fields[0])]
        if mode in WITH_TOKENS and isinstance(text, str) and " ".join(text.split()) != text:
            raise LabelError(
                f"{where} counts characters of a text that is not its tokens joined by single "
                "spaces; read it in mode raw or sentence"
            )

    def _check(self, row: Row, example_id: str, blind: frozenset[str]) -> None:
        names = [*self.fields, *(x.name for x in self.labels if x.name not in blind)]
        wanted = [*map(self.column, names), *([self.id] if self.id else [])]
        missing = [column for column in wanted if row.get(column) is None]
        if missing:
            raise ExampleError(
                f"{example_id} has nothing in the column {missing[0]!r}; its columns are "
                f"{', '.join(map(str, row))}"
            )
        if self.id and isinstance(row[self.id], (list, dict)):
            raise ExampleError(
                f"{example_id} has a {type(row[self.id]).__name__} in the column {self.id!r}; "
                "expected its id, a text or a number"
            )


_LANG: Final = r"(?P<lang>[a-z]{2,3})"
_SHARD: Final = re.compile(
    rf"(?:{_LANG}/|data/)?(?P<split>\w+)-[0-9]+-of-[0-9]+\.parquet"
    r"|(?:(?P<saved>\w+)/)?data-[0-9]+-of-[0-9]+\.arrow"
)
_FILE: Final = re.compile(rf"(?P<split>\w+)(?:[.-]{_LANG})?(?:{'|'.join(map(re.escape, ENDINGS))})")
_OF_THE_LIBRARY: Final = frozenset({"dataset_dict.json", "dataset_info.json", "state.json"})


def _find(folder: Path) -> Sequence[Part]:
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
        items = columns.items(partial(open_rows, path), numbers, part.split, mode)
        yield from guarded(path, items)


def _check(part: Part, *, columns: TableColumns) -> None:
    for path in part.files:
        columns.check_file(path)


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
        check=partial(_check, columns=_PLAIN),
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
    """Reader of tables (JSON lines, CSV, TSV, Parquet, saved `datasets`) with these columns.

    Fields name the segments; ``columns`` has the table's name of a field or label, where it is not
    the same. Classes and tags without names take those of the file's ``ClassLabel``, else all that
    occur. Without an ``id`` column, rows are counted (``dev-17``). Nobody checks that ids differ.

    >>> nli = table_benchmark(
    ...     fields=("premise", "hypothesis"),
    ...     labels=(LabelSpec("label", "class"),),
    ...     columns={"premise": "sentence1", "hypothesis": "sentence2"},
    ...     id="pairID",
    ... )
    >>> nli.modes
    ('raw', 'sentence', 'pretokenized', 'retokenize', 'tokens_mwt')
    """
    chosen = TableColumns(tuple(fields), tuple(labels), dict(columns or {}), id)
    return replace(
        TABLE,
        name=name,
        fields=chosen.fields,
        labels=chosen.labels,
        modes=chosen.modes,
        read_part=partial(_read, columns=chosen),
        check=partial(_check, columns=chosen),
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
    """Specification and examples of an object of the library `datasets`, for `Client.backfill`.

    The data is a `datasets.Dataset`, or another that can be iterated more than once. For a label
    given by name, the feature of its column tells the kind: a ``ClassLabel`` is a class, a list of
    them tags, a float a float, all else a class. The other arguments are those of
    `table_benchmark`; the mode is by default ``raw``, or ``pretokenized`` with tags.
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
