"""Writes the tables of the reference pages from the code: ``python docs/generate.py``.

A page marks the place of a table with ``<!-- generated: NAME -->`` and ``<!-- end -->``. A test
fails when a page is out of date.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import numpy as np

from clients.benchmarks import BENCHMARKS
from featurestore import OrderPolicy
from featurestore.stream.options import StreamOptions as ReaderOptions
from service.app import create_app
from service.errors import status_of
from service.settings import Settings
from syntax import errors
from syntax.batches import AssemblySpec
from syntax.errors import DROP_REASONS
from syntax.matrices import COLUMNS, MATRICES
from syntax.options import options_table
from trainer.evaluation.pictures import draw_effects
from trainer.options import (
    ConstituencyOptions,
    DataOptions,
    OptimizerOptions,
    ParserOptions,
    StreamOptions,
    TrainingOptions,
)
from trainer.options.parser import TaggerOptions
from trainer.recipes import RECIPES
from trainer.reproduction.account import effects, in_order, page

DOCS: Final = Path(__file__).parent
MARKED: Final = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; a bar in a cell is escaped, a line break becomes a space."""
    head = list(names)
    lines = [head, ["---"] * len(head), *rows]
    cells = (
        [" ".join(cell.split()).replace("|", r"\|").replace("``", "`") for cell in line]
        for line in lines
    )
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def settings() -> str:
    """Every setting of the service, as its field describes it."""
    rows = (
        (f"`{name}`", _default(field.default), field.description or "")
        for name, field in Settings.model_fields.items()
    )
    return table(("setting", "default", "meaning"), rows)


def _default(value: Any) -> str:
    if value is None or not isinstance(value, str | int | float):
        return "-"  # none, or computed; the description says which
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def routes() -> str:
    """Every route of the service, from its OpenAPI document."""
    paths = create_app(Settings(store="unused")).openapi()["paths"]
    rows = (
        (f"`{method.upper()} {path}`", route.get("description", "").partition("\n\n")[0])
        for path, methods in paths.items()
        for method, route in methods.items()
    )
    return table(("route", "what it does"), rows)


def error_names() -> str:
    """Every error that an answer can name, with its status and its class."""
    found = _family(errors.ParsebankError)
    rows = ((f"`{cls.error_type}`", str(int(status_of(cls("")))), _first(cls)) for cls in found)
    return table(("`error_type`", "status", "meaning"), rows)


def drop_reasons() -> str:
    """Why an example can be missing from a dataset."""
    named = {cls.error_type: cls for cls in (errors.InputError, *_family(errors.ParsebankError))}
    rows = ((f"`{name}`", _first(cls)) for name, cls in named.items() if name in DROP_REASONS)
    return table(("reason", "meaning"), rows)


def _family(cls: type[errors.ParsebankError]) -> Iterator[type[errors.ParsebankError]]:
    """The classes of `syntax.errors` that are raised themselves."""
    own = [child for child in cls.__subclasses__() if child.__module__ == errors.__name__]
    if not own or cls in (errors.UnknownNameError, errors.ConflictError, errors.LabelError):
        yield cls
    if cls is errors.UnknownTokenizerError:
        yield cls
    for child in own:
        yield from _family(child)


def readers() -> str:
    """Every benchmark reader; ``parsebank benchmarks describe`` prints the rest."""
    rows = (
        (
            f"`{name}`",
            ", ".join(f"`{field}`" for field in reader.fields),
            ", ".join(f"{label.kind} `{label.name}`" for label in reader.labels) or "-",
            ", ".join(reader.modes),
        )
        for name, reader in ((name, BENCHMARKS[name]) for name in BENCHMARKS)
    )
    return table(("name", "segments", "labels", "modes"), rows)


def recipes() -> str:
    """Every recipe, as ``parsebank train --list`` lists them."""
    return table(
        ("recipe", "trains"), ((f"`{name}`", _first(RECIPES[name])) for name in sorted(RECIPES))
    )


def matrices() -> str:
    """Every matrix that a stream can be asked for, with its settings, on a tree of two words."""
    rows = []
    for name in MATRICES:
        function = MATRICES[name]
        made = function(np.array([1, -1], np.int32))
        chosen = (
            f"`{key}={json.dumps(one.default) if one.default in (True, False) else one.default}`"
            for key, one in inspect.signature(function).parameters.items()
            if one.kind is one.KEYWORD_ONLY and key not in COLUMNS
        )
        shape = f"({', '.join('L' * made.ndim)}{',' if made.ndim == 1 else ''})"
        short = name.rpartition(".")[0]
        rows.append((f"`{short}`", shape, str(made.dtype), ", ".join(chosen), _first(function)))
    return table(("name", "shape", "dtype", "settings", "meaning"), rows)


def options(kind: type[Any]) -> Callable[[], str]:
    """The options of a section of a recipe, as its docstring describes them."""

    def rows() -> Iterator[tuple[str, str, str]]:
        described = inspect.getdoc(kind).partition("Attributes:\n")[2]  # type: ignore[union-attr]
        defaults = {field.name: field.default for field in fields(kind)}
        kinds = get_type_hints(kind)
        entries = re.findall(r"^    ([\w, ]+): (.*(?:\n {8}.*)*)", described, re.MULTILINE)
        for names, text in entries:
            listed = names.split(", ")
            chosen = [value for value in get_args(kinds[listed[0]]) if isinstance(value, str)]
            if any(f"`{value}`" not in text for value in chosen):
                text += f" One of {', '.join(f'`{value}`' for value in chosen)}."
            yield (
                ", ".join(f"`{name}`" for name in listed),
                ", ".join(_default_option(defaults[name]) for name in listed),
                text,
            )

    return lambda: table(("option", "default", "meaning"), rows())


def _default_option(value: Any) -> str:
    if value is MISSING:
        return "required"
    if value is None or value == ():
        return "-"
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _first(thing: Any) -> str:
    """First paragraph of a docstring."""
    return inspect.getdoc(thing).partition("\n\n")[0]  # type: ignore[union-attr]


def results() -> list[dict[str, Any]]:
    """The committed results of `parsebank reproduce`, with their errata."""
    folder = DOCS / "reproduction"
    errata = tomllib.loads((folder / "errata.toml").read_text(encoding="utf-8"))
    paths = sorted(folder.glob("*.json"))
    return in_order((json.loads(path.read_text(encoding="utf-8")) for path in paths), errata)


def pipelines() -> str:
    """The newest results of `benchmarks.pipelines`."""
    results = sorted((DOCS.parent / "benchmarks" / "results").glob("pipelines-*.json"))
    if not results:
        return "Not measured yet.\n"
    content = json.loads(results[-1].read_text(encoding="utf-8"))
    columns = [(time, way) for time in ("first", "second") for way in ("theirs", "ours")]
    rows = (
        (
            one["pipeline"],
            f"{one['sample']:,} of {one['examples']:,}",
            *(f"{one['hours'][way][time]:.3g}" for time, way in columns),
        )
        for one in content["pipelines"]
    )
    names = ("pipeline", "sample", *(f"{way}, {time} time" for time, way in columns))
    return f"Hours of one core, {content['date'][:10]}:\n\n{table(names, rows)}"


TABLES: Final[dict[str, Callable[[], str]]] = {
    "drop-reasons": drop_reasons,
    "errors": error_names,
    "options-assembly": lambda: options_table(AssemblySpec),
    "options-constituency": options(ConstituencyOptions),
    "options-data": lambda: options_table(DataOptions),
    "options-optimizer": options(OptimizerOptions),
    "options-order": lambda: options_table(OrderPolicy),
    "options-parser": options(ParserOptions),
    "options-reader": lambda: options_table(ReaderOptions),
    "options-stream": options(StreamOptions),
    "options-tagger": options(TaggerOptions),
    "options-training": options(TrainingOptions),
    "matrices": matrices,
    "pipelines": pipelines,
    "readers": readers,
    "recipes": recipes,
    "reproduction": lambda: page(results()),
    "routes": routes,
    "settings": settings,
}


def refreshed(page: str) -> str:
    """A page with its tables made anew."""
    return MARKED.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


if __name__ == "__main__":
    for path in sorted(DOCS.rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = refreshed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(DOCS)}\n")
    draw_effects(effects(results()), DOCS / "images" / "reproduction.svg")
