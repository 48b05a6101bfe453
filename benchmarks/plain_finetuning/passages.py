"""The same with questions about passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn

from benchmarks.plain_finetuning.plain import IGNORED, Example, OverEncoder, Plain
from trainer.metrics.answers import answer_scores


class Passages(Plain):
    """Questions about passages, read in windows; scored by the F1 of answers.

    An example is a question and a passage, and its answers as (first character, text). A batch has
    all windows of its questions; one without an answer adds nothing to the loss.
    """

    STRIDE: Final = 64
    """Pieces of the passage from the start of a window to that of the next."""

    def model(self) -> Any:
        model = OverEncoder(self.setting.encoder)
        model.add("ends", nn.Linear(model.width, 2))
        return model

    def loss(self, model: Any, batch: Sequence[Example]) -> Tensor:
        windows, ends = [], []
        for (question, passage), answers in batch:
            own = self._windows(question, passage)
            windows += own
            ends += [_place(window["offsets"], *answers[0]) for window in own]
        logits_BL2, ends_B2 = self._logits(model, windows), torch.tensor(ends)
        losses = [
            nn.functional.cross_entropy(
                logits_BL2[..., end], ends_B2[:, end], ignore_index=IGNORED, reduction="sum"
            )
            for end in (0, 1)
        ]
        return (losses[0] + losses[1]) / (ends_B2[:, 0] != IGNORED).sum().clamp(min=1)

    def evaluate(self, model: Any) -> float:
        total = 0.0
        for (question, passage), answers in self.dev:
            windows = self._windows(question, passage)
            logits_BL2 = self._logits(model, windows)
            best = max(map(self._best, windows, logits_BL2))
            found = passage[best[1] : best[2]]
            total += answer_scores(found, [text for _, text in answers], "en", "squad")[1]
        return total / len(self.dev)

    def _best(self, window: Any, logits_L2: Tensor) -> tuple[float, int, int]:
        """Score and characters of the best span of at most 30 pieces."""
        length = len(window["offsets"])
        start_L, end_L = logits_L2[:length].unbind(-1)
        sums_LL = (start_L[:, None] + end_L[None]).triu().tril(29)
        allowed = torch.ones(length, length, dtype=torch.bool).triu().tril(29)
        at = int(sums_LL.masked_fill(~allowed, -torch.inf).argmax())
        first, last = divmod(at, length)
        offsets = window["offsets"]
        return float(sums_LL[first, last]), offsets[first][0] or 0, offsets[last][1] or 0

    def _windows(self, question: str, passage: str) -> list[Any]:
        """Ids of each window, and the characters of its pieces; none outside the passage."""
        pieces = self.tokenizer(question, add_special_tokens=False)["input_ids"]
        special = self.tokenizer.num_special_tokens_to_add(pair=True)
        room = self.setting.max_length - special - len(pieces)
        found = self.tokenizer(
            question,
            passage,
            truncation="only_second",
            max_length=self.setting.max_length,
            stride=room - self.STRIDE,  # here, what two windows share
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        windows = []
        for row, offsets in enumerate(found["offset_mapping"]):
            sides = found.sequence_ids(row)
            pairs = zip(sides, offsets, strict=True)
            own = [span if side == 1 else (None, None) for side, span in pairs]
            names = [name for name in self.tokenizer.model_input_names if name in found]
            ids = {name: found[name][row] for name in names}
            windows.append({"ids": ids, "offsets": own})
        return windows

    def _logits(self, model: Any, windows: Sequence[Any]) -> Tensor:
        """Scores of both ends, *shape* (B, L, 2), -1e9 outside the passage."""
        encoded = self.tokenizer.pad([one["ids"] for one in windows], return_tensors="pt")
        logits_BL2: Tensor = model.layers["ends"](model(encoded))
        outside_BL = torch.ones(logits_BL2.shape[:2], dtype=torch.bool)
        for row, window in enumerate(windows):
            inside = [low is not None for low, _ in window["offsets"]]
            outside_BL[row, : len(inside)] = ~torch.tensor(inside)
        return logits_BL2.masked_fill(outside_BL[..., None], -1e9)


def _place(
    offsets: Sequence[tuple[int | None, int | None]], start: int, text: str
) -> Sequence[int]:
    """First and last piece of an answer in a window; `IGNORED` where it is not whole."""
    end = start + len(text)
    inside = [(at, span) for at, span in enumerate(offsets) if None not in span]
    covered = [(at, span) for at, span in inside if span[0] < end and span[1] > start]
    whole = covered and covered[0][1][0] <= start and covered[-1][1][1] >= end
    return (covered[0][0], covered[-1][0]) if whole else (IGNORED, IGNORED)
