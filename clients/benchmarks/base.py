"""What a benchmark reader is: a few statements, where its files lie, how one part is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from syntax.errors import InputError, SpecError, UnknownNameError
from syntax.examples import DatasetSpec, Example, LabelSpec, Mode, Rejection
from syntax.registry import Registry, unknown_name

ANY: Final = "*"
"""The split or language of a part that the user may call as they like."""

Item = Example | Rejection
"""What a reader yields: every line or record of its files is one or the other."""


@dataclass(frozen=True, slots=True)
class Part:
    """One split in one language, and the files that hold it, in reading order."""

    split: str
    lang: str
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark as its reader knows it.

    A new one is one short file that builds this and adds it to `BENCHMARKS`; `docs/benchmarks.md`
    walks through it.

    Attributes:
        name: Name in the registry, and of the dataset unless the user gives another.
        fields: Name of each segment of an example, in order.
        labels: Label columns.
        modes: How the segments can be read; the first is the usual one.
        layout: How the files must be named, in words, for messages.
        source, licence: Where the data comes from and under which terms.
        find: The parts in a folder.
        read_part: The examples of one part, in file order, in one of ``modes``. Raises nothing
            for a bad record: it becomes a `Rejection` (see `attempt`).
        bundled: The folder that is read when the user gives none.
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

    def parts(self, path: Path | None = None) -> list[Part]:
        """The splits and languages under ``path``, sorted.

        Raises:
            SpecError: No path was given and nothing is bundled.
            UnknownNameError: There is no such folder, or nothing in it is this benchmark's.
        """
        folder = self._existing(path)
        found = sorted(self.find(folder), key=lambda part: (part.split, part.lang))
        if not found:
            raise UnknownNameError(
                f"{folder} holds no {self.name} files: expected {self.layout}; "
                f"found {_listing(folder)}",
                path=str(folder),
            )
        return found

    def part(self, path: Path | None, split: str, lang: str) -> Part:
        """One part; a single file is taken for the split and language that the user states.

        Raises:
            SpecError: No path was given, or two sets of files claim the part.
            UnknownNameError: No such file, split or language; the message lists those found.
        """
        place = self._existing(path)
        if place.is_file():
            return Part(split, lang, (place,))
        return _chosen(self.parts(place), split, lang)

    def mode(self, asked: str | None = None) -> Mode:
        """The mode asked for, or the usual one.

        Raises:
            SpecError: The benchmark cannot be read in the mode asked for.
        """
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
        """Every example of one part, and every record that is none, in file order.

        Raises:
            SpecError, UnknownNameError: As `part` and `mode`, before the first item.
        """
        return self.read_part(self.part(path, split, lang), self.mode(mode))

    def spec(
        self, split: str, lang: str, *, name: str | None = None, mode: str | None = None
    ) -> DatasetSpec:
        """The dataset that a part becomes in the store."""
        return DatasetSpec(
            name=name or self.name,
            split=split,
            lang=lang,
            fields=self.fields,
            labels=self.labels,
            mode=self.mode(mode),
            source=self.source,
            licence=self.licence,
        )

    def _existing(self, path: Path | None) -> Path:
        place = path or self.bundled
        if place is None:
            raise SpecError(f"{self.name} needs a path to its files: {self.layout}")
        if not place.exists():
            raise UnknownNameError(
                f"there is no file or folder {place}; expected {self.layout}", path=str(place)
            )
        return place


BENCHMARKS: Registry[Benchmark] = Registry("benchmark")
"""Every reader by name."""


def attempt(example_id: str, make: Callable[[], Example]) -> Item:
    """The example that ``make`` builds, or the named error that it raises, as a rejection."""
    try:
        return make()
    except InputError as error:
        return Rejection(example_id, error.error_type, error.message)


def _chosen(parts: Sequence[Part], split: str, lang: str) -> Part:
    of_split = [part for part in parts if part.split in (split, ANY)]
    if not of_split:
        raise unknown_name("split", split, {part.split for part in parts})
    chosen = [part for part in of_split if part.lang in (lang, ANY)]
    if not chosen:
        langs = {part.lang for part in of_split}
        raise unknown_name(f"language of the {split} split", lang, langs)
    if len(chosen) > 1:
        claims = ", ".join(str(part.files[0]) for part in chosen)
        raise SpecError(
            f"several files hold {split} in {lang!r}: {claims}; give the path of one of them"
        )
    return replace(chosen[0], split=split, lang=lang)


def _listing(folder: Path, limit: int = 10) -> str:
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else [folder.name]
    shown = ", ".join(names[:limit]) or "nothing"
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
