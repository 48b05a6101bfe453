"""Outcomes of trials, as JSON that can be committed, and as a page for people."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from syntax.commands.tables import markdown_table
from trainer.reproduction.row import Findings
from trainer.reproduction.rows import ROWS
from trainer.reproduction.trial import Trial, now

FINDINGS: Final = "findings.json"
COLUMNS: Final = ("figure", "published", "ours", "± (seeds)", "95 % interval", "n")
_LIBRARIES: Final = ("parsebank", "torch", "transformers", "numpy")


def account(trial: Trial, findings: Findings) -> dict[str, Any]:
    row = trial.row
    return {
        "row": row.name,
        "claim": row.claim,
        "source": row.source,
        "convention": row.convention,
        "rule": row.rule,
        "size": trial.size,
        "reductions": row.reductions.get(trial.size, "none"),
        "verdict": findings.verdict(trial.size in row.reductions),
        "figures": [figure.to_json() for figure in findings.figures],
        "listings": [asdict(listing) for listing in findings.listings],
        "notes": list(findings.notes),
        "seeds": list(trial.seeds),
        "command": trial.command,
        "when": now(),
        "commit": commit(),
        "versions": {name: version(name) for name in _LIBRARIES},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "training_seconds": round(sum(run["seconds"] for run in trial.results())),
        "runs": {"finished": len(trial.results()), "failed": trial.failures()},
        "data": {source.path: data_hash(trial.data / source.path) for source in row.data},
    }


def data_hash(path: Path) -> str:
    """The first 16 digits of SHA-256 over the names and bytes of the files, in order of name."""
    digest = sha256()
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    for file in files:
        digest.update(file.relative_to(path.parent).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def commit() -> str | None:
    """The commit of the source tree that this code runs from; None for an installed package."""
    folder = Path(__file__).parent
    command = ("git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12")
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def figure_rows(content: Mapping[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            figure["name"],
            _rounded(figure["published"]),
            _rounded(figure["mean"]),
            _rounded(figure["deviation"]),
            " to ".join(map(_rounded, figure["interval_95"] or ())),
            len(figure["values"]),
        )
        for figure in content["figures"]
    ]


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def corrected(one: Mapping[str, Any], erratum: Mapping[str, Any]) -> dict[str, Any]:
    """An account with what was found wrong beside its figures, which stay as they are.

    The erratum's facts replace the account's. It also has ``published`` figures by name, names of
    figures that are ``withdrawn``, and further ``notes``.
    """
    facts = dict(erratum)
    published = facts.pop("published", {})
    withdrawn = facts.pop("withdrawn", ())
    notes = [f"**Erratum.** {note}" for note in facts.pop("notes", ())]
    known = {*one, *(figure["name"] for figure in one["figures"])}
    unknown = {*facts, *published, *withdrawn} - known
    if unknown:
        raise KeyError(f"{one['row']} has no {', '.join(sorted(unknown))}")
    figures = [
        {**figure, "published": published.get(figure["name"], figure["published"])}
        for figure in one["figures"]
        if figure["name"] not in withdrawn
    ]
    return {**one, **facts, "figures": figures, "notes": [*notes, *one["notes"]]}


def page(
    accounts: Iterable[Mapping[str, Any]], errata: Mapping[str, Mapping[str, Any]] | None = None
) -> str:
    """The accounts as Markdown: a table of verdicts, then each row with its figures.

    Errata are by row and size (``noise-small``), as `corrected` reads them.
    """
    found = [
        corrected(one, (errata or {}).get(f"{one['row']}-{one['size']}", {})) for one in accounts
    ]
    ordered = sorted(found, key=lambda one: (list(ROWS).index(one["row"]), one["size"]))
    verdicts = [
        (f"[{one['row']}](#{one['row']}-{one['size']})", one["source"], one["verdict"])
        for one in ordered
    ]
    overview = markdown_table(("row", "source", "verdict"), verdicts)
    return "\n\n".join((overview, *map(_section, ordered))) + "\n"


def _section(one: Mapping[str, Any]) -> str:
    """The claim, verdict, rule, reductions and figures; sources and notes stay in the JSON."""
    facts = {
        "rule": one["rule"],
        "smaller": one["reductions"],
        "run again": f"`{one['command']}`",
    }
    listings = [
        f"{listing['title']}:\n\n{markdown_table(listing['header'], listing['rows'])}\n"
        for listing in one.get("listings", ())
    ]
    figures = [
        (name, published, f"{mean} ± {deviation}" if deviation else mean, count)
        for name, published, mean, deviation, _, count in figure_rows(one)
    ]
    errata = [f"\n{note}" for note in one["notes"] if note.startswith("**Erratum.**")]
    return "\n".join(
        (
            f"### {one['row']} {one['size']}\n",
            f"{one['claim']}. **{one['verdict'].capitalize()}.**\n",
            *(f"- **{name}**: {value}" for name, value in facts.items()),
            "",
            *listings,
            markdown_table(("figure", "published", "ours ± seeds", "n"), figures),
            *errata,
        )
    )
