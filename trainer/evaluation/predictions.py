"""The predictions of a model for single examples, on disk as one JSON object a line.

Nothing here imports torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from syntax.errors import SpecError
from syntax.strict_json import parse_json


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction of a model for one example.

    Every metric in ``shares`` is a sum over the examples divided by another sum: an example adds
    ``(1, 1)`` or ``(0, 1)`` to accuracy, and ``(2 * hits, predicted + gold)`` to the F1 of
    entities. So a metric of any choice of examples follows from their shares. BLEU is not a ratio
    of sums: an example adds the ten numbers of `trainer.metrics.translation.bleu_counts`.

    Attributes:
        gold: The label, as plain JSON; None of an unlabelled example.
        predicted: As plain JSON.
        right: True if all of the prediction is right; None without gold.
        shares: By metric, what the example adds to the sums; empty without gold.
        probability: Of the predicted class, for tasks that choose one.
    """

    example_id: str
    gold: Any
    predicted: Any
    right: bool | None = None
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    probability: float | None = None


Submission = Literal["lines", "glue", "squad"]
"""Forms of files that leaderboards take.

``lines``: a class on each line, or a tag on each line and a blank line after each example, as for
XTREME; ``glue``: a header and ``index TAB prediction``, counted from 0; ``squad``: a JSON object of
answers by the ids of their questions.
"""


def pair_name(first: str, others: str) -> str:
    """Name of a pair of languages: of the first field, and of the others.

    >>> pair_name("en", "de")
    'en+de'
    """
    return f"{first}+{others}"


def predictions_file(folder: Path, split: str, lang: str) -> Path:
    return folder / f"predictions-{split}-{lang}.jsonl"


def write_predictions(predictions: Iterable[Prediction], path: Path) -> None:
    lines = [json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in predictions]
    path.write_text("".join(lines), "utf-8")


def read_predictions(path: Path) -> list[Prediction]:
    with path.open(encoding="utf-8") as lines:
        return [_prediction(line, f"{path}, line {n}") for n, line in enumerate(lines, 1)]


def _prediction(line: str, place: str) -> Prediction:
    try:
        content = parse_json(line)
        shares = {name: _numbers(found) for name, found in content["shares"].items()}
        return Prediction(**{**content, "shares": shares})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SpecError(
            f"{place} is not a prediction ({error}); write the file again with parsebank evaluate"
        ) from error


def _numbers(found: list[float]) -> tuple[float, ...]:
    if len(found) < 2:
        raise ValueError(f"shares are two numbers or more, and {found} came")
    return tuple(found)
