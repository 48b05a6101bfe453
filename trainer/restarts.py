"""The schedule ``restarts``: after evaluations that bring nothing, back to the best weights.

Source: the released code of Ahmad et al. (2019), after that of Ma et al. (2018). Where the run
restarts follows from its evaluations alone, so that a resumed run restarts at the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelerate.utils import extract_model_from_parallel
from torch import nn

from trainer.options import TrainingOptions
from trainer.progress import Evaluation, Progress, height


def restarts(evaluations: Sequence[Evaluation], training: TrainingOptions) -> list[int]:
    """Numbers of the evaluations, from 0, behind which a run takes its best weights again.

    They are no better than the best one, and either lower than it in the watched metric by more
    than ``restart_drop``, or preceded by ``restart_after`` such since the best one or the last
    restart. Each ``restart_double`` restarts double ``restart_after``.

    >>> options = TrainingOptions(schedule="restarts", restart_after=1)
    >>> scores = [0.5, 0.6, 0.58, 0.57, 0.2]
    >>> restarts([Evaluation(step, "las", score, {}) for step, score in enumerate(scores)], options)
    [3, 4]
    """
    found: list[int] = []
    best: Evaluation | None = None
    waited, after, tie = 0, training.restart_after, training.restart_metric

    def watched(evaluation: Evaluation) -> float:
        return evaluation.headline if tie is None else evaluation.score(tie)

    for number, evaluation in enumerate(evaluations):
        if best is None or height(evaluation, tie) > height(best, tie):
            best, waited = evaluation, 0
        elif waited >= after or watched(best) - watched(evaluation) > training.restart_drop:
            found.append(number)
            waited = 0
            after *= 1 + (len(found) % training.restart_double == 0)
        else:
            waited += 1
    return found


class Restarts:
    """Takes a run back to its best weights, kept on the host; only with this schedule."""

    def __init__(self, training: TrainingOptions) -> None:
        self._training = training
        self.best: dict[str, Any] | None = None

    def ended(self, progress: Progress) -> bool:
        most = self._training.max_restarts
        return most is not None and len(self._made(progress)) >= most

    def evaluated(self, progress: Progress, model: nn.Module, optimizers: Sequence[Any]) -> None:
        """Keep the best weights, or go back to them; optimizers with other schedules go on."""
        if self._training.schedule != "restarts":
            return
        model, last = extract_model_from_parallel(model), len(progress.evaluations) - 1
        if progress.best is progress.evaluations[last]:
            weights = model.state_dict()
            self.best = {name: value.detach().cpu().clone() for name, value in weights.items()}
        elif self._made(progress)[-1:] == [last]:
            assert self.best is not None
            going_on = set[nn.Parameter]()
            for part in optimizers:
                if part.training.schedule == "restarts":
                    part.optimizer.state.clear()
                else:
                    going_on.update(part.parameters)
            named = model.state_dict(keep_vars=True).items()
            stays = {name for name, of in named if of in going_on}
            back = {name: of for name, of in self.best.items() if name not in stays}
            model.load_state_dict(back, strict=False)

    def _made(self, progress: Progress) -> list[int]:
        if self._training.schedule != "restarts":
            return []
        return restarts(progress.evaluations, self._training)
