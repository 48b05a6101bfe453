"""Heat maps: attention and matrices of one example, and scores of pairs of languages.

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
    return mpl.rc_context({"svg.fonttype": "none", "font.size": 8, "text.parse_math": False})


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _save(figure: Any, path: Path) -> None:
    """Write a figure without warnings of fonts that lack a letter: they draw a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _row(figure: Any, count: int) -> list[Any]:
    return list(figure.subplots(1, count, squeeze=False)[0])
