r"""Tables of scores as Markdown, CSV and LaTeX.

Markdown and LaTeX give scores in percent, as mean ± sample standard deviation over seeds; CSV gives
every number as it is, and the score of each seed. Stars tell that a system differs from the
baseline system by approximate randomisation: ``*`` with p < 0.05, ``**`` with p < 0.01.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from typing import Final

from trainer.evaluation.compare import stars
from trainer.evaluation.tables import ScoreTable, SeedScores
from trainer.results import table as markdown_table

_MISSING: Final = "–"
_ESCAPES: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def markdown(scores: ScoreTable, *, by_seed: bool = False) -> str:
    """The table for people, with what it leaves out below.

    ``by_seed`` gives each seed a row of its own, below its system's.
    """
    rows = _rows(scores, by_seed, "±", lambda stars: stars.replace("*", r"\*"))
    shown = markdown_table(("system", *scores.columns), rows)
    caption = _caption(scores).replace("*", r"\*")
    parts = [f"# {scores.dataset}, {scores.split}: {scores.metric}", shown, caption]
    parts.append("\n".join(f"* {note}" for note in scores.notes))
    return "\n\n".join(filter(None, parts)) + "\n"


def latex(scores: ScoreTable, *, by_seed: bool = False) -> str:
    """A ``tabular`` with the rules of the package booktabs; what is missing in comments above."""
    rows = _rows(scores, by_seed, r"$\pm$", lambda stars: f"$^{{{stars}}}$" if stars else "")
    head = ("", *map(escaped, scores.columns))
    body = [(escaped(name), *cells) for name, *cells in rows]
    return tabular(head, body, [line for line in (_caption(scores), *scores.notes) if line])


def tabular(
    header: Sequence[str], rows: Iterable[Sequence[str]], comments: Iterable[str] = ()
) -> str:
    """Cells that are LaTeX already, with the rules of booktabs; the comments above."""
    lines = [
        *(f"% {line}" for line in comments),
        rf"\begin{{tabular}}{{l{'c' * (len(header) - 1)}}}",
        r"\toprule",
        _latex_row(header),
        r"\midrule",
        *map(_latex_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines).replace(_MISSING, "--") + "\n"


def escaped(text: str) -> str:
    r"""A text as LaTeX prints it.

    >>> escaped("a_b & 5%")
    'a\\_b \\& 5\\%'
    """
    return "".join(_ESCAPES.get(char, char) for char in text)


def comma_separated(scores: ScoreTable) -> str:
    """A line for each system and column, with every number; empty where one is missing."""
    seeds, out = scores.seeds, StringIO()
    writer = csv.writer(out, lineterminator="\n")
    tests = ("difference", "low", "high", "p_bootstrap", "p_permutation")
    head = ("system", "language", "metric", "seeds", "mean", "deviation")
    writer.writerow((*head, *tests, *(f"seed{seed}" for seed in seeds)))
    for column in scores.columns:
        if column in scores.unlearned:
            name, score = scores.unlearned_name, scores.unlearned[column]
            writer.writerow((name, column, scores.metric, "", score, *[""] * (6 + len(seeds))))
    for name, row in scores.rows.items():
        for column in scores.columns:
            cell = row.get(column)
            if cell is None:
                writer.writerow((name, column, scores.metric, 0, *[""] * (7 + len(seeds))))
                continue
            numbers = [len(cell.scores), cell.mean, cell.deviation]
            test: list[float | None] = [None] * 5
            if cell.test is not None:
                found = cell.test.difference
                test = [found.difference, found.low, found.high, found.bootstrap, found.permutation]
            each = [cell.scores.get(seed) for seed in seeds]
            writer.writerow((name, column, scores.metric, *numbers, *test, *each))
    return out.getvalue()


def _rows(
    scores: ScoreTable, by_seed: bool, plus_minus: str, raised: Callable[[str], str]
) -> list[tuple[str, ...]]:
    """The rows as text: the baseline without a model, then each system, by seed if asked."""
    rows: list[tuple[str, ...]] = []
    if scores.unlearned:
        found = (scores.unlearned.get(column) for column in scores.columns)
        rows.append((scores.unlearned_name, *map(_percent, found)))
    for name, row in scores.rows.items():
        cells = []
        for column in scores.columns:
            cell = row.get(column)
            text = _percent(None if cell is None else cell.mean)
            if cell is not None and cell.deviation is not None:
                text += f" {plus_minus} {_percent(cell.deviation)}"
            cells.append(text + raised(_stars(cell)))
        rows.append((name, *cells))
        for seed in scores.seeds if by_seed else ():
            found = (row[one].scores.get(seed) if one in row else None for one in scores.columns)
            rows.append((f"{name}, seed {seed}", *map(_percent, found)))
    return rows


def _percent(score: float | None) -> str:
    return _MISSING if score is None else f"{100 * score:.2f}"


def _stars(cell: SeedScores | None) -> str:
    if cell is None or cell.test is None:
        return ""
    return stars(cell.test.difference)


def _caption(scores: ScoreTable) -> str:
    seeds = f"{len(scores.seeds)} seeds" if len(scores.seeds) != 1 else "one seed"
    text = f"{scores.metric} in percent, mean and sample standard deviation over {seeds}."
    if scores.baseline is None:
        return text
    return (
        f"{text} Against {scores.baseline} by approximate randomisation, each p value by itself: "
        "* p < 0.05, ** p < 0.01."
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(re.sub(r"\s+", " ", cell) for cell in cells) + r" \\"
