"""The row of parsers of eight languages, from their cards to its verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.reproduction.rows import ROWS, own_parsers
from trainer.reproduction.trial import Trial


def _write_cards(folder: Path, ahead: dict[str, float]) -> None:
    for lang in own_parsers.LANGS:
        for kind, pattern in own_parsers.KINDS.items():
            points = 60 + (ahead[lang] if kind == "own" else 0)
            scores = {"test": {part: {"LAS": points} for part in own_parsers.PARTS}}
            path = folder / "models" / pattern.format(lang)
            path.parent.mkdir(parents=True, exist_ok=True)
            content = {"scores": {f"UD_{lang}": scores} if kind == "own" else scores}
            path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("worst", "holds"), [(1.0, True), (-30.0, None)], ids=["every-language", "one-falls"]
)
def test_ours_is_better_if_its_gain_is_told_from_the_spread_of_languages(
    worst: float, holds: bool | None, tmp_path: Path
) -> None:
    row = ROWS["own-parsers"]
    _write_cards(tmp_path, dict.fromkeys(own_parsers.LANGS, 4.0) | {"cop": worst})
    found = row.run(Trial(row, tmp_path, tmp_path, "small", ()))
    assert found.holds is holds
    assert [one.name for one in found.figures[:2]] == list(row.effects)
    assert found.figures[0].mean == pytest.approx((7 * 4 + worst) / 8)
    assert {one.name: one.mean for one in found.figures}["cop, raw text: LAS, own"] == 60 + worst
