"""``parsebank reproduce``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from syntax.commands.tables import AsJson, print_json, print_table

if TYPE_CHECKING:
    from trainer.reproduction.trial import Trial


def reproduce(
    row: Annotated[str, typer.Argument(help="Name of a row; see --list.", show_default=False)] = "",
    every: Annotated[bool, typer.Option("--list", help="List the rows and what is there.")] = False,
    size: Annotated[
        str, typer.Option(help="small, or full: as published, as far as data and weights allow.")
    ] = "small",
    seeds: Annotated[
        int | None, typer.Option(help="How many seeds. Default: the row's.", min=1)
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder of all trials; each goes on where it stopped.")
    ] = Path("reproduction"),
    data: Annotated[
        Path,
        typer.Option(envvar="PARSEBANK_DATA", help="Folder of treebanks and benchmarks."),
    ] = Path("data"),
    threads: Annotated[
        int | None, typer.Option(help="Threads of each training. Default: torch's choice.", min=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute a published figure again, and say whether it holds."""
    from trainer.environment import require_training

    require_training()
    from trainer.reproduction import rows
    from trainer.reproduction.account import COLUMNS, FINDINGS, account, figure_rows
    from trainer.reproduction.items import write_items
    from trainer.reproduction.row import size_named
    from trainer.reproduction.trial import Trial
    from trainer.results import write_json

    sized = size_named(size)

    def trial_of(name: str) -> Trial:
        chosen = rows.ROWS[name]
        usual = chosen.seeds.get(sized, 0)
        count = usual if seeds is None or not usual else seeds
        folder = output.absolute() / f"{name}-{sized}"
        return Trial(chosen, folder, data.absolute(), sized, tuple(range(1, count + 1)), threads)

    if every or not row:
        _list([trial_of(one) for one in rows.ROWS], as_json)
        return
    trial = trial_of(row)
    trial.check_data()
    trial.begin()
    content = account(trial, trial.row.run(trial))
    write_json(trial.folder / FINDINGS, content)
    write_items(trial.folder)
    if as_json:
        print_json(content)
        return
    for listing in content["listings"]:
        print_table(listing["header"], listing["rows"], title=listing["title"])
    print_table(COLUMNS, figure_rows(content))
    facts = ("rule", "reductions", "floors", "notes", "verdict")
    for name in facts:
        told = content[name] if isinstance(content[name], str) else " ".join(content[name])
        if told:
            typer.echo(f"{name}: {told}", err=True)
    typer.echo(f"All numbers are in {trial.folder / FINDINGS}", err=True)


_COLUMNS: Final = ("row", "kind", "verdict", "hours", "code since")


def _list(trials: Sequence[Trial], as_json: bool) -> None:
    records = [_record(trial) for trial in trials]
    if as_json:
        print_json(records)
        return
    print_table(_COLUMNS, [[record[name] for name in _COLUMNS] for record in records])
    needed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        for source in record["missing"].items():
            needed[source].append(record["row"])
    if needed:
        lines = [(*source, tuple(names)) for source, names in needed.items()]
        print_table(("missing data", "from", "needed by"), lines)
        typer.echo(f"Put it into {trials[0].data}, or set PARSEBANK_DATA to its folder.", err=True)


def _record(trial: Trial) -> dict[str, Any]:
    """A row with its result: the one of this folder, or the one that the project published."""
    from trainer.reproduction.account import known_result
    from trainer.reproduction.trial import commits_since

    row, missing, found = trial.row, trial.missing(), known_result(trial)
    verdict, hours, since = "not run", "", ""
    if found is not None:
        verdict = found["verdict"]
        hours = f"{found['training_seconds'] / 3600:.1f}"
        commits = commits_since(found["commit"], row.code) if row.code else None
        since = "" if commits is None else f"{commits} commits"
    elif missing:
        verdict = f"not run; data: {len(missing)} of {len(row.data)} missing"
    return {
        "row": row.name,
        "kind": row.kind,
        "claim": row.claim,
        "source": row.source,
        "rule": row.rule,
        "verdict": verdict,
        "hours": hours,
        "code since": since,
        "missing": {source.path: source.origin for source in missing},
    }
