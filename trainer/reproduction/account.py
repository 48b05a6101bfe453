"""Outcomes of trials, as JSON that can be committed, and as a page for people."""

from __future__ import annotations

import os
import platform
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from syntax.commands.tables import markdown_table
from trainer.evaluation.pictures import Effect
from trainer.reproduction.judgement import Kind, verdict
from trainer.reproduction.row import Figure, Findings
from trainer.reproduction.rows import ROWS
from trainer.reproduction.trial import Trial, commit, now
from trainer.results import read_json

FINDINGS: Final = "findings.json"
COLUMNS: Final = ("figure", "published", "ours", "± (seeds)", "95 % interval", "n")
_LIBRARIES: Final = ("parsebank", "torch", "transformers", "numpy")


def account(trial: Trial, findings: Findings) -> dict[str, Any]:
    row, began = trial.row, trial.begin()
    notes = list(findings.notes)
    if began["seeds"] != len(trial.seeds):  # to add seeds until a rule holds is no test
        notes.append(f"Begun with {began['seeds']} seeds; their number changed while it ran.")
    reduced = row.reduced(trial.size)
    return {
        "row": row.name,
        "claim": row.claim,
        "source": row.source,
        "convention": row.convention,
        "rule": row.rule,
        "size": trial.size,
        "reductions": reduced,
        "verdict": verdict(row.kind, findings.holds, findings.floors, reduced != "none"),
        "floors": [str(floor) for floor in findings.floors],
        "designed": {name: began[name] for name in ("power", "seeds", "commit", "when")},
        "figures": [figure.to_json() for figure in findings.figures],
        "listings": [asdict(listing) for listing in findings.listings],
        "notes": notes,
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


_ADDED: Final = {"found": "", "to_decide": ""}
"""Facts of errata that no result has."""


def corrected(one: Mapping[str, Any], erratum: Mapping[str, Any]) -> dict[str, Any]:
    """An account with what was found wrong beside its figures, which stay as they are.

    The erratum's facts replace the account's, or are new: ``found``, what the trial found in plain
    words; ``to_decide``, the hours or data without which the row decides nothing. It also has
    ``published`` figures by name, names of figures that are ``withdrawn``,
    values by name of figures ``derived`` from the account's, and further ``notes``.
    """
    facts = dict(erratum)
    published = facts.pop("published", {})
    withdrawn = facts.pop("withdrawn", ())
    derived = facts.pop("derived", {})
    notes = [f"**Erratum.** {note}" for note in facts.pop("notes", ())]
    known = {*one, *_ADDED, *derived, *(figure["name"] for figure in one["figures"])}
    unknown = {*facts, *published, *withdrawn} - known
    if unknown:
        raise KeyError(f"{one['row']} has no {', '.join(sorted(unknown))}")
    figures = [
        Figure(name, published.get(name), tuple(values)).to_json()
        for name, values in derived.items()
    ]
    figures += [
        {**figure, "published": published.get(figure["name"], figure["published"])}
        for figure in one["figures"]
        if figure["name"] not in withdrawn
    ]
    return {**_ADDED, **one, **facts, "figures": figures, "notes": [*notes, *one["notes"]]}


def known_result(trial: Trial) -> dict[str, Any] | None:
    """The result of a trial in its folder, or the one in this source tree, with its erratum."""
    own = trial.folder / FINDINGS
    if own.exists():
        return read_json(own, f"{own} is gone")
    name = f"{trial.row.name}-{trial.size}"
    path = _RESULTS / f"{name}.json"
    if not path.exists():
        return None
    errata = tomllib.loads((_RESULTS / "errata.toml").read_text(encoding="utf-8"))
    return corrected(read_json(path, f"{path} is gone"), errata.get(name, {}))


_RESULTS: Final = Path(__file__).parents[2] / "docs" / "reproduction"


def effects(accounts: Iterable[Mapping[str, Any]]) -> list[Effect]:
    """The differences that the rows name, with the range of the seeds where n < 3."""
    found = []
    for one in accounts:
        for figure in one["figures"]:
            if figure["name"] not in ROWS[one["row"]].effects:
                continue
            values = figure["values"]
            low, high = figure["interval_95"] if len(values) > 2 else (min(values), max(values))
            counts = not any(
                word in one["verdict"] for word in ("not testable", "withdrawn", "described")
            )
            name = f"{one['row']}: {figure['name']}"
            found.append(Effect(name, figure["mean"], low, high, figure["published"], counts))
    return found


_KINDS: Final[dict[Kind, str]] = {
    "reproduction": "Reproductions",
    "sanity check": "Sanity checks, which no paper's result depends on",
    "own claim": "Claims of our own",
}
_SHOWN: Final = 6


def in_order(
    accounts: Iterable[Mapping[str, Any]], errata: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The accounts with their errata (`corrected`) by row and size, in the order of the rows."""
    found = [corrected(one, errata.get(f"{one['row']}-{one['size']}", {})) for one in accounts]
    return sorted(found, key=lambda one: (list(ROWS).index(one["row"]), one["size"]))


def page(accounts: Iterable[Mapping[str, Any]]) -> str:
    """The accounts as Markdown: verdicts by kind of row, then each row with its first figures."""
    ordered = list(accounts)
    parts = []
    for kind, title in _KINDS.items():
        verdicts = [
            (f"[{one['row']}](#{one['row']}-{one['size']})", one["verdict"], one["found"])
            for one in ordered
            if ROWS[one["row"]].kind == kind
        ]
        if verdicts:
            table = markdown_table(("row", "verdict", "what was found"), verdicts)
            parts.append(f"**{title}**\n\n{table}")
    return "\n\n".join((*parts, *map(_section, ordered))) + "\n"


def _ran(one: Mapping[str, Any]) -> str:
    """When, for how long, and what to ask a history for that may have changed since."""
    facts = one["when"][:10]
    if one["training_seconds"] >= 180:
        facts += f", {one['training_seconds'] / 3600:.1f} hours"
    if code := " ".join(ROWS[one["row"]].code):
        commit = one["commit"].removesuffix("-dirty")
        facts += f"; changes since: `git log {commit}.. -- {code}`"
    return str(facts)


def _power(one: Mapping[str, Any]) -> str:
    """The seeds that the row takes by its design, and their hours if the trial was as it is now."""
    design, seeds = ROWS[one["row"]].design, len(one["seeds"])
    if design is None or not seeds:
        return ""
    hours = one["training_seconds"] / seeds * design.seeds / 3600
    is_same = one["reductions"] == ROWS[one["row"]].reduced(one["size"])
    return f"{design}: {hours:.1f} hours" if is_same and hours >= 1 else str(design)


def _section(one: Mapping[str, Any]) -> str:
    """The claim, verdict, rule, reductions and first figures; the rest stays in the JSON."""
    row, began = ROWS[one["row"]], one.get("designed")
    reductions = row.reduced(one["size"])
    facts = {
        "source": one["source"],
        "rule": one["rule"],
        "rule at commit": f"{began['commit']}, {began['when'][:10]}" if began else "",
        "present rule": "" if one["rule"] == row.rule else row.rule,
        "present claim": "" if one["claim"] == row.claim else row.claim,
        "power": _power(one),
        "to decide": one["to_decide"],
        "floors": "; ".join(one.get("floors", ())),
        "smaller": one["reductions"],
        "ran": _ran(one),
        "run again": f"`{one['command']}`",
        "now smaller": "" if one["reductions"] == reductions else reductions,
    }
    listings = [
        f"{listing['title']}:\n\n{markdown_table(listing['header'], listing['rows'])}\n"
        for listing in one.get("listings", ())
    ]
    figures = [
        (name, published, f"{mean} ± {deviation}" if deviation else mean, count)
        for name, published, mean, deviation, _, count in figure_rows(one)
    ]
    figures.sort(key=lambda figure: (figure[0] not in row.effects, not figure[1]))
    file = f"reproduction/{one['row']}-{one['size']}.json"
    more = len(figures) - _SHOWN
    rest = [f"\n[{more} more figures]({file}), the value of every seed, versions and hashes."]
    errata = [f"\n{note}" for note in one["notes"] if note.startswith("**Erratum.**")]
    return "\n".join(
        (
            f"### {one['row']} {one['size']}\n",
            f"{one['claim']}. **{one['verdict'].capitalize()}.**\n",
            *(f"- **{name}**: {value}" for name, value in facts.items() if value),
            "",
            *listings,
            markdown_table(("figure", "published", "ours ± seeds", "n"), figures[:_SHOWN]),
            *(rest if more > 0 else ()),
            *errata,
        )
    )
