"""The front page's example: a stream that four ranks began, and two go on with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT, blocks_of


@pytest.mark.slow
def test_two_ranks_read_what_four_left(folder: Path) -> None:
    (code,) = [one.code for one in blocks_of(ROOT / "README.md") if "load_state_dict" in one.code]
    taken: Counter[str] = Counter()
    code = code.replace("batches = [next(rank) for rank in ranks]", "taken.update(read(ranks))")
    assert "taken" in code
    names: dict[str, Any] = {"taken": taken, "read": read_once}
    exec(compile(code, "README.md", "exec"), names)
    assert sum(taken.values()) == 2 * 4 * 4
    for stream in names["ranks"]:
        for batch in stream:
            taken.update(batch["example_id"])
    whole = names["data"].stream(batch_size=32, seed=0, epoch=0)
    assert taken == Counter(one for batch in whole for one in batch["example_id"])
    assert set(taken.values()) == {1}


def read_once(ranks: list[Any]) -> list[str]:
    return [one for rank in ranks for one in next(rank)["example_id"]]
