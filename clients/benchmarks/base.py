"""The benchmark reader."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Concatenate, Final, ParamSpec

from clients.benchmarks.lines import check_characters
from clients.files import ENDINGS, plain_path
from syntax.errors import ExampleError, InputError, SpecError, UnknownNameError
from syntax.examples import DatasetSpec, Example, LabelSpec, Mode, Rejection
from syntax.registry import Registry, unknown_name

ANY: Final = "*"
"""The split or language of a part that the user names freely."""

WHOLE: Final = "whole"

NESTED: Final = "the record is nested too deeply; repair it"

P = ParamSpec("P")

Item = Example | Rejection

_SPLITS: Final = {
    **dict.fromkeys(("training",), "train"),
    **dict.fromkeys(("valid", "validation", "val", "development", "testa"), "dev"),
    **dict.fromkeys(("testb",), "test"),
}


def canonical_split(name: str) -> str:
    """Canonical name of a split; unknown names are returned unchanged.

    >>> canonical_split("testa"), canonical_split("validation_matched"), canonical_split("train")
    ('dev', 'dev_matched', 'train')
    """
    head, mark, tail = name.partition("_")
    return _SPLITS.get(head, head) + mark + tail


@dataclass(frozen=True, slots=True)
class Part:
    """A split in a language, with its files in reading order.

    Attributes:
        root: Folder to which ids that name files are relative, if the reader needs one.
    """

    split: str
    lang: str
    files: tuple[Path, ...]
    root: Path | None = None


Names = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark and its reader; `docs/extend/benchmark.md` explains how to add one.

    Attributes:
        labels: Label columns, without the names that ``names_in`` finds.
        modes: Modes in which the segments can be read, the default first.
        layout: How the files are named, in words, for messages.
        origin: Source and licence of certain parts, where their files state them.
        read_part: Reads the items of a part, in file order. A bad record becomes a `Rejection`
            (see `attempt`), not an exception.
        ids: How an example's id is made, in words, and what it joins.
        rejects: The rejected records, in words, by reason.
        langs: Published languages; empty if the set is open.
        encodings: Encodings of the files; several where copies differ (`lines.encoding_of`).
        names_in: Finds label names that only the files tell, in all parts of a folder, so that
            every split has the same list. It must not depend on the order of the parts.
        general: True for a reader of any text or table, or of another reader's files. It is
            guessed from a path only if no other fits.
        named_only: True if it is never guessed, because another general reader has the same files.
        check: Raises a `SpecError` for a part whose files lack what the reader was told to read.
    """

    name: str
    fields: tuple[str, ...]
    labels: tuple[LabelSpec, ...]
    modes: tuple[Mode, ...]
    layout: str
    source: str
    licence: str
    find: Callable[[Path], Sequence[Part]]
    read_part: Callable[[Part, Mode], Iterator[Item]]
    bundled: Path | None = None
    ids: str = ""
    rejects: Mapping[str, str] = field(default_factory=dict)
    langs: tuple[str, ...] = ()
    quirks: tuple[str, ...] = ()
    encodings: tuple[str, ...] = ("utf-8",)
    names_in: Callable[[Sequence[Part]], Names] | None = None
    general: bool = False
    origin: Callable[[Sequence[Part]], tuple[str, str]] | None = None
    named_only: bool = False
    check: Callable[[Part], None] | None = None

    def parts(self, path: Path | None = None) -> list[Part]:
        """Splits and languages under ``path``, sorted; a single file is one part."""
        folder = path or self.bundled
        if folder is None:
            raise SpecError(f"{self.name} needs a path to its files: {self.layout}")
        if not folder.exists():
            raise UnknownNameError(
                f"there is no file or folder {folder}; expected {self.layout}", path=str(folder)
            )
        if folder.is_file():
            return [Part(ANY, ANY, (folder,))]
        named = [replace(part, split=canonical_split(part.split)) for part in self.find(folder)]
        found = sorted(named, key=lambda part: (part.split, part.lang))
        if not found:
            raise UnknownNameError(
                f"{folder} holds no {self.name} files: expected {self.layout}; "
                f"found {_listing(folder)}",
                path=str(folder),
            )
        return found

    def part(self, path: Path | None, split: str, lang: str) -> Part:
        """One part; a single file counts as the split and language given."""
        chosen = self.chosen(path, split, lang)
        if len(chosen) > 1:
            claims = ", ".join(str(part.files[0]) for part in chosen)
            raise SpecError(
                f"several files hold {split} in {lang!r}: {claims}; give the path of one of them"
            )
        return chosen[0]

    def chosen(
        self, path: Path | None = None, split: str | None = None, lang: str | None = None
    ) -> list[Part]:
        parts = self.parts(path)
        if split is not None:
            name = canonical_split(split)
            _check(name, f"split of {self.name}", {part.split for part in parts})
            parts = [replace(x, split=name) for x in parts if x.split in (name, ANY)]
        if lang is not None:
            kind = f"language of {self.name}" + (f" ({split})" if split else "")
            _check(lang, kind, {part.lang for part in parts})
            parts = [replace(x, lang=lang) for x in parts if x.lang in (lang, ANY)]
        return parts

    def check_part(self, split: str, lang: str, path: Path | None = None) -> None:
        """Refuse a part that is missing, or whose files lack what is to be read; reads no items."""
        part = self.part(path, split, lang)
        if self.check is not None:
            self.check(part)

    def mode(self, asked: str | None = None) -> Mode:
        for mode in self.modes:
            if asked in (None, mode):
                return mode
        raise SpecError(
            f"{self.name} cannot be read in mode {asked!r}; choose one of {', '.join(self.modes)}",
            mode=asked,
            known=list(self.modes),
        )

    def read(
        self, path: Path | None, split: str, lang: str, mode: str | None = None
    ) -> Iterator[Item]:
        return self.items(self.part(path, split, lang), self.mode(mode))

    def items(self, part: Part, mode: Mode) -> Iterator[Item]:
        """Items as of `read`, for a part from `parts`; an `InputError` if the files hold none."""
        empty = True
        for item in self.read_part(part, mode):
            empty = False
            yield item
        if empty:
            files = ", ".join(map(str, part.files))
            raise InputError(
                f"{files} holds nothing of {part.split} in {part.lang!r}; name the files that do"
            )

    def labels_of(self, path: Path | None = None) -> tuple[LabelSpec, ...]:
        """Label columns with all their names.

        If only the files tell the names, all splits and languages under ``path`` are read, once
        until a file changes. A single file gives only its own names.
        """
        if self.names_in is None:
            return self.labels
        parts = tuple(self.parts(path))
        stats = (file.stat() for part in parts for file in part.files)
        state = tuple((stat.st_size, stat.st_mtime_ns) for stat in stats)
        names = _names(self.names_in, parts, state)
        return tuple(replace(x, names=names.get(x.name, x.names)) for x in self.labels)

    def spec(
        self,
        split: str,
        lang: str,
        *,
        path: Path | None = None,
        name: str | None = None,
        mode: str | None = None,
    ) -> DatasetSpec:
        """Dataset of a part; needs the path if only the files tell label names or origin."""
        source, licence = self.source, self.licence
        if self.origin is not None and path is not None:
            source, licence = self.origin(self.chosen(path, split, lang))
        return DatasetSpec(
            name=name or self.name,
            split=canonical_split(split),
            lang=lang,
            fields=self.fields,
            labels=self.labels_of(path),
            mode=self.mode(mode),
            source=source,
            licence=licence,
        )


BENCHMARKS: Registry[Benchmark] = Registry("benchmark")


def register(benchmark: Benchmark) -> Benchmark:
    return BENCHMARKS.add(benchmark.name, benchmark)


def named_parts(folder: Path, *, patterns: Sequence[str], lang: str = ANY) -> list[Part]:
    """Parts of one file each, from names below ``folder``.

    Patterns are regular expressions of paths without the ending of a packed file, with the groups
    ``split`` and ``lang`` (else ``lang`` is the argument); slashes are folders.
    """
    found = [match for pattern in patterns for match in _matches(folder, pattern)]
    return [_part(match, path, lang) for match, path in found]


def files_like(folder: Path, pattern: str) -> tuple[Path, ...]:
    """Files below a folder whose path, without the ending of a packed file, fits a glob."""
    found: dict[Path, Path] = {}
    for path in sorted(path for end in ("", *ENDINGS) for path in folder.glob(pattern + end)):
        other = found.setdefault(plain_path(path), path)
        if other != path:
            raise SpecError(f"{path} and {other.name} are one file, packed and not; remove one")
    return tuple(found.values())


def _matches(folder: Path, pattern: str) -> Iterator[tuple[re.Match[str], Path]]:
    for path in folder.glob("/".join("*" * (pattern.count("/") + 1))):
        match = re.fullmatch(pattern, plain_path(path).relative_to(folder).as_posix())
        if match and path.is_file():
            yield match, path


def _part(match: re.Match[str], path: Path, lang: str) -> Part:
    named = match.groupdict()
    return Part(named.get("split") or WHOLE, named.get("lang") or lang, (path,))


def with_dev_share(reader: Benchmark, share: float) -> Benchmark:
    """Reader that divides its texts into ``train`` and ``dev``; its files must not name splits.

    An example is in ``dev`` if the first eight bytes of the SHA-256 of its id, as a fraction of
    2**64, are less than ``share``. So it stays in its split when texts are added or removed.
    """
    if not 0 < share < 1:
        raise SpecError(f"the share of dev is {share}; expected more than 0 and less than 1")
    return replace(
        reader,
        find=partial(_divided_parts, reader),
        read_part=partial(_divided_items, reader, share),
    )


def is_dev(example_id: str, share: float) -> bool:
    digest = hashlib.sha256(example_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def _divided_parts(reader: Benchmark, folder: Path) -> Sequence[Part]:
    parts = reader.find(folder)
    named = sorted({part.split for part in parts} - {ANY})
    if named:
        raise SpecError(
            f"{folder} has splits of its own ({', '.join(named)}); leave out the share of dev"
        )
    return [replace(part, split=split) for part in parts for split in ("train", "dev")]


def _divided_items(reader: Benchmark, share: float, part: Part, mode: Mode) -> Iterator[Item]:
    if part.split not in ("train", "dev"):
        raise SpecError(f"with a share of dev the splits are train and dev; got {part.split!r}")
    for item in reader.read_part(part, mode):
        if is_dev(item.example_id, share) == (part.split == "dev"):
            yield item


def attempt(
    example_id: str,
    make: Callable[Concatenate[str, P], Example],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Item:
    """The example ``make(example_id, *args)``, or a rejection with its named error."""
    try:
        check_characters(example_id, "its id")
        return make(example_id, *args, **kwargs)
    except InputError as error:
        return rejection(example_id, error)
    except RecursionError:  # ijson nests as deeply as a document does
        return rejection(example_id, ExampleError(NESTED))


def rejection(example_id: str, error: InputError) -> Rejection:
    return Rejection(_escaped(example_id), error.error_type, _escaped(error.message))


@lru_cache(maxsize=32)
def _names(
    names_in: Callable[[Sequence[Part]], Names],
    parts: tuple[Part, ...],
    state: tuple[tuple[int, int], ...],  # noqa: ARG001
) -> Names:
    return names_in(parts)


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _check(name: str, kind: str, known: set[str]) -> None:
    if not known & {name, ANY}:
        raise unknown_name(kind, name, known)


def _listing(folder: Path, limit: int = 10) -> str:
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else [folder.name]
    shown = ", ".join(names[:limit]) or "nothing"
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
