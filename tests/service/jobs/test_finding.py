"""Whether an uploaded line has a text, however JSON or CoNLL-U spell it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.jobs.lines import TextFinder

TOKENS = """1\tDon\tdo\tAUX\t_\t_\t3\taux\t_\tSpaceAfter=No
2\t't\tnot\tPART\t_\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

"""


def line(**segment: Any) -> dict[str, Any]:
    return {"example": {"example_id": "1", "segments": [{"text": "First."}, segment]}}


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    ("text", "segment"),
    [
        ('She said: "Grüße" \\ twice.', {"text": 'She said: "Grüße" \\ twice.'}),
        ("Привет, мир", {"text": "Привет, мир"}),
        ("They do n't go .", {"tokens": ["They", "do", "n't", "go", "."]}),
        ("Don't go.", {"conllu": TOKENS}),
        ("Don't go. Don't go.", {"conllu": TOKENS * 2}),
        ("Don't  go.", {"conllu": f"# text = Don't  go.\n{TOKENS}"}),
        ("Don't go.", {"conllu": TOKENS.replace("1\t", "0.1\tElided\t" + "_\t" * 7 + "_\n1\t", 1)}),
    ],
)
def test_a_text_is_found_as_every_mode_spells_it(
    text: str, segment: dict[str, Any], ascii_only: bool
) -> None:
    body = json.dumps(line(**segment), ensure_ascii=ascii_only)
    assert TextFinder(text).is_in(body)
    for other in (text[:-1], f"{text} More.", "Else."):
        assert not TextFinder(other).is_in(body)


def test_escaped_letters_are_letters() -> None:
    body = json.dumps(line(text="Ada")).replace("Ada", "\\u0041da")
    assert TextFinder("Ada").is_in(body)


def test_trees_that_cannot_be_read_have_no_text() -> None:
    assert not TextFinder("Don't go.").is_in(json.dumps(line(conllu="1\tDon't\n")))
