"""``parsebank demo``: the whole journey on the bundled sample, with an account at its end."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syntax.commands.tables import print_table

if TYPE_CHECKING:
    from rich.console import Console

    from clients.client.results import ParseResult
    from clients.demo import Round

_SHOWN = 11


def demo(
    store: Annotated[
        Path | None, typer.Option(help="Folder of the store. Default: a new temporary folder.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep the temporary folder.")
    ] = True,
) -> None:
    """Start a service, then parse, backfill and train on the bundled sample, twice.

    Shows that the second round parses nothing. Takes a few minutes and ends by itself.
    """
    from rich.console import Console

    from clients.processes import termination_unwinds
    from syntax.extras import missing_extra

    if find_spec("torch") is None:
        raise missing_extra("the demo trains", "train")
    console = Console(markup=False, emoji=False, highlight=False)
    folder = Path(tempfile.mkdtemp(prefix="parsebank-demo-"))
    with termination_unwinds():
        try:
            _tour(store or folder / "store", folder, console)
        except BaseException:
            console.print(f"The demo did not finish; its logs are in {folder}.", soft_wrap=True)
            raise
    if keep or store is not None:
        place = store or folder / "store"
        console.print(f"The store lies in {place}; look into it with", soft_wrap=True)
        for line in queries(place):
            console.print(f"  {line}", soft_wrap=True)
    if not keep:
        shutil.rmtree(folder)


def show_rounds(rounds: Sequence[Round]) -> None:
    names = ("first round", "the same again")
    rows = [(title, *map(figure, rounds)) for title, figure in _FIGURES]
    print_table(("figure", *names[: len(rounds)]), rows, title="parsebank demo")
    typer.echo("The first parse waits for the model, the first backfill for its workers.", err=True)


def queries(store: Path) -> list[str]:
    query = "select upos, count(*) as n from words group by upos order by n desc limit 5"
    place = shlex.quote(str(store))
    # `make demo` runs in an environment that the shell has not activated.
    here = shlex.quote(str(Path(sys.executable).with_name("parsebank")))
    command = "parsebank" if shutil.which("parsebank") else here
    return [
        f"{command} store inspect --store {place}",
        f"{command} store sql --store {place} {shlex.quote(query)}",
    ]


_FIGURES: tuple[tuple[str, Callable[[Round], str]], ...] = (
    ("examples", lambda one: f"{one.examples:,}"),
    ("parses done", lambda one: f"{one.parses_done:,}"),
    ("parses reused", lambda one: f"{one.parses_reused:,}"),
    ("dropped", lambda one: ", ".join(f"{n} {why}" for why, n in one.dropped.items()) or "none"),
    ("parse", lambda one: f"{one.speed['parse']:,.0f} texts/s"),
    ("backfill", lambda one: f"{one.speed['backfill']:,.0f} examples/s"),
    ("training", lambda one: f"{one.speed['training']:,.0f} examples/s"),
    ("loss at start", lambda one: f"{one.training['loss_start']:.4f}"),
    ("loss at end", lambda one: f"{one.training['loss_end']:.4f}"),
    ("accuracy on dev", lambda one: f"{one.training['accuracy']:.1%}"),
)


def _tour(store: Path, folder: Path, console: Console) -> None:
    from clients.demo import play, serving
    from clients.display import sentence_tree

    def tell(line: str) -> None:
        console.print(f"{line} ...")

    def show(result: ParseResult) -> None:
        console.print(sentence_tree(result.parsed()[_SHOWN].sentences[0]))

    tell("starting the service")
    with serving(store, folder / "service.log") as client:
        first = play(client, store, folder / "training-1", tell, show)
        tell("all of it once more")
        second = play(client, store, folder / "training-2", tell, lambda _: None)
    show_rounds([first, second])
