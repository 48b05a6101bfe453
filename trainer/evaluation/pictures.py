"""Heat maps of one example, pairs of languages and labels; curves of layers and groups; effects.

Words stand at both edges, as in figure 6 of Zhang et al. 2020 (SG-Net).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.extras import missing_extra

if TYPE_CHECKING:
    from trainer.evaluation.analyse import Analysis, Confusion
    from trainer.evaluation.transfer import CrossedTable

_INCHES_OF_LABELS = 1.6
_INCHES_OF_PIECE = 0.24
_SMALLEST, _LARGEST = 3.0, 30.0


@dataclass(frozen=True, slots=True)
class Panel:
    """One heat map.

    Attributes:
        values: Rows attend, or depend; columns are attended to. *Shape:* (L, L), or (1, L) of a
            vector. NaN stays blank.
    """

    title: str
    values: NDArray[Any]


def draw_panels(panels: Sequence[Panel], labels: Sequence[str], path: Path) -> None:
    """Write heat maps side by side, with the pieces at both edges of each.

    Labels are the texts of the L positions. The suffix of the path says which kind (svg, png, pdf).
    """
    side = _INCHES_OF_LABELS + _INCHES_OF_PIECE * len(labels)
    side = min(max(side, _SMALLEST), _LARGEST)
    with _style():
        figure = _figure((side * len(panels), side))
        for axes, panel in zip(_row(figure, len(panels)), panels, strict=True):
            is_vector = len(panel.values) == 1
            shown = axes.imshow(panel.values, cmap="viridis", aspect="auto" if is_vector else None)
            axes.set_title(panel.title)
            axes.set_xticks(range(len(labels)), labels, rotation=90)
            rows = [""] if is_vector else labels
            axes.set_yticks(range(len(panel.values)), rows)
            figure.colorbar(shown, ax=axes, shrink=0.7)
        _save(figure, path)


def draw_crossed(crossed: CrossedTable, path: Path) -> None:
    """Write the scores of all pairs of languages as a heat map with numbers."""
    langs = list(crossed.langs)
    scores = np.array([[crossed.cells[a, b].score for b in langs] for a in langs])
    side = _INCHES_OF_LABELS + 0.6 * len(langs)
    with _style():
        figure = _figure((side + 1, side))
        (axes,) = _row(figure, 1)
        shown = axes.imshow(scores, cmap="viridis")
        axes.set_title(f"{crossed.dataset}, {crossed.split}: {crossed.metric}")
        axes.set_ylabel(crossed.fields[0])
        axes.set_xlabel(", ".join(crossed.fields[1:]))
        axes.set_xticks(range(len(langs)), langs)
        axes.set_yticks(range(len(langs)), langs)
        middle = (scores.min() + scores.max()) / 2
        for (row, column), score in np.ndenumerate(scores):
            colour = "black" if score > middle else "white"
            axes.text(column, row, f"{100 * score:.1f}", ha="center", va="center", color=colour)
        figure.colorbar(shown, ax=axes)
        _save(figure, path)


def draw_curves(curves: Mapping[str, Mapping[str, Any]], title: str, path: Path) -> None:
    """Write scores over layers, with their intervals: a panel for each task.

    Curves are those of `trainer.probing.curve`, by task.
    """
    with _style():
        figure = _figure((2.6 * len(curves), 2.6))
        figure.suptitle(title)
        for axes, (task, curve) in zip(_row(figure, len(curves)), curves.items(), strict=True):
            points = [one for one in curve["layers"] if isinstance(one["layer"], int)]
            layers = [one["layer"] for one in points]
            axes.plot(layers, [one["score"] for one in points], marker="o", label="probe")
            bounds = ([one[bound] for one in points] for bound in ("low", "high"))
            axes.fill_between(layers, *bounds, alpha=0.3)
            for name in ("linear", "control"):
                if name in points[0]:
                    axes.plot(layers, [one[name] for one in points], linestyle=":", label=name)
            for name, share in curve["baselines"].items():
                axes.axhline(share, color="gray", linestyle="--", label=name)
            axes.set_title(f"{task} ({curve['metric']})")
            axes.set_xlabel("layer")
            axes.set_xticks(layers)
            axes.legend(fontsize=6)
        _save(figure, path)


def draw_analysis(found: Analysis | Confusion, path: Path) -> None:
    """Write scores by group, or a confusion matrix."""
    from trainer.evaluation.analyse import Analysis

    if isinstance(found, Analysis):
        _draw_groups(found, path)
    else:
        _draw_confusion(found, path)


def _draw_groups(analysis: Analysis, path: Path) -> None:
    """Write scores by group with their intervals, and below them the difference of two systems.

    Groups that are numbers are joined by lines.
    """
    groups, line = analysis.groups, "-" if analysis.is_number else ""
    curves = [("A", 0, [group.one for group in groups])]
    if analysis.other is not None:
        curves.append(("B", 0, [group.other for group in groups if group.other]))
        curves.append(("A - B", 1, [group.gap for group in groups if group.gap]))
    places, count = np.arange(len(groups)), 1 + curves[-1][1]
    with _style():
        width = min(max(_INCHES_OF_LABELS + 0.3 * len(groups), _SMALLEST), _LARGEST)
        figure = _figure((width, 0.5 + 2.4 * count))
        panels = figure.subplots(count, 1, squeeze=False, sharex=True)[:, 0]
        for at, (label, panel, scores) in enumerate(curves):
            points = [(one.score, one.low, one.high) for one in scores]
            score, low, high = np.array(points, float).reshape(-1, 3).T
            # What has no interval is a point alone.
            bars = np.nan_to_num([score - low, high - score]).clip(0)
            drawn = {"fmt": f"o{line}", "markersize": 3, "linewidth": 1, "label": label}
            panels[panel].errorbar(places + 0.1 * at * (panel == 0), score, bars, **drawn)
            panels[panel].legend(fontsize=6)
            panels[panel].set_ylabel(analysis.metric)
        if analysis.other is not None:
            panels[1].axhline(0, color="gray", linewidth=0.5)
        panels[0].set_title(analysis.title)
        panels[-1].set_xticks(places, [group.name for group in groups], rotation=90)
        panels[-1].set_xlabel(analysis.by)
        _save(figure, path)


def _draw_confusion(found: Confusion, path: Path) -> None:
    """Write a confusion matrix with its counts; colours are shares of the gold labels."""
    counts = np.array(found.counts, float).reshape(len(found.labels), -1)
    shares = counts / np.abs(counts).sum(1, keepdims=True).clip(1e-9)
    side = _INCHES_OF_LABELS + 0.5 * len(found.labels)
    with _style():
        figure = _figure((side + 1, side))
        (axes,) = _row(figure, 1)
        shown = axes.imshow(shares, cmap="PuOr", vmin=-1, vmax=1)
        axes.set_title(found.title)
        axes.set_xlabel("predicted")
        axes.set_ylabel("gold")
        axes.set_xticks(range(len(found.labels)), found.labels, rotation=90)
        axes.set_yticks(range(len(found.labels)), found.labels)
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if abs(shares[row, column]) > 0.6 else "black"
            axes.text(column, row, f"{count:g}", ha="center", va="center", color=colour)
        figure.colorbar(shown, ax=axes)
        _save(figure, path)


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference, measured and published.

    Attributes:
        low, high: Of its interval; equal to ``mean`` where it has none.
        counts: False for what was measured but tests nothing; it is drawn in grey.
    """

    name: str
    mean: float
    low: float
    high: float
    published: float | None
    counts: bool


def draw_effects(effects: Sequence[Effect], path: Path) -> None:
    """Write a forest plot: a line for each effect, its interval, and the published one beside."""
    with _style():
        figure = _figure((8.0, 0.8 + 0.25 * len(effects)))
        (axes,) = _row(figure, 1)
        for at, one in enumerate(reversed(effects)):
            bars = [[one.mean - one.low], [one.high - one.mean]]
            colour = "C0" if one.counts else "silver"
            axes.errorbar([one.mean], [at], xerr=bars, fmt="o", markersize=4, color=colour)
            if one.published is not None:
                axes.plot([one.published], [at], "D", markersize=4, color="C1", fillstyle="none")
        axes.axvline(0, color="gray", linewidth=0.5)
        axes.set_yticks(range(len(effects)), [one.name for one in reversed(effects)])
        axes.set_xlabel("points; grey: nothing is tested; diamond: published")
        _save(figure, path)


def check_picture(path: Path) -> None:
    """Refuse a file that cannot be drawn, before anything is computed for it."""
    require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in kinds:
        raise SpecError(f"{path} is not a picture; its suffix must be one of {', '.join(kinds)}")


def require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing_extra("pictures need matplotlib", "pictures") from None


def _style() -> Any:
    """A style in which text stays text in SVG, so that it can be searched."""
    require_matplotlib()
    import matplotlib as mpl

    # A dollar is a dollar here, and not the beginning of a formula.
    return mpl.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "parsebank",
            "font.size": 8,
            "text.parse_math": False,
        }
    )


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _save(figure: Any, path: Path) -> None:
    """Write a figure without warnings of fonts that lack a letter: they draw a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        path.parent.mkdir(parents=True, exist_ok=True)
        dated = {"Date": None} if path.suffix == ".svg" else None  # the same picture, the same file
        figure.savefig(path, metadata=dated)


def _row(figure: Any, count: int) -> list[Any]:
    return list(figure.subplots(1, count, squeeze=False)[0])
