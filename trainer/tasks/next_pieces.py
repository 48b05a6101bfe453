"""The pieces that a causal language model predicts. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

POSITIONS: Final = "next_positions"
TARGETS: Final = "next_targets"
NEXT_ARRAYS: Final = (POSITIONS, TARGETS)


@dataclass(frozen=True, slots=True)
class NextPieces:
    """The pieces that positions predict; a `syntax.contrast.Sampler` that draws nothing."""

    def sample(
        self,
        batch: Mapping[str, NDArray[Any]],
        keys: Sequence[str],  # noqa: ARG002
        seed: int,  # noqa: ARG002
        epoch: int,  # noqa: ARG002
    ) -> dict[str, NDArray[Any]]:
        """Positions b * L + l before a real one, and the ids after them; int64 (M,) each."""
        ids_BL, real_BL = batch["input_ids"], batch["attention_mask"].astype(bool)
        before_BL = np.zeros_like(real_BL)
        before_BL[:, :-1] = real_BL[:, 1:]
        positions_M = np.flatnonzero(before_BL)
        targets_M = ids_BL.reshape(-1)[positions_M + 1].astype(np.int64)
        return {POSITIONS: positions_M, TARGETS: targets_M}
