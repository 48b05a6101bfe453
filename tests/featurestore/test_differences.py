"""The labels of two cards, told apart in words."""

from __future__ import annotations

import pytest

from featurestore.tables.card import label_difference
from syntax.examples import LabelSpec

INTENT = LabelSpec("intent", "class", ("buy", "sell"))


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ([], "intent (class) here, none came"),
        (
            [LabelSpec("intent", "tags", ("buy", "sell"), "text")],
            "intent (class) here, intent (tags of text) came",
        ),
        (
            [LabelSpec("intent", "class", ("sell", "buy"))],
            "intent: the same names in another order",
        ),
        ([LabelSpec("intent", "class", ("buy",))], "intent: 'sell' did not come"),
        (
            [LabelSpec("intent", "class", ("buy", "sell", *"abcdefg"))],
            "intent: 'a', 'b', 'c', 'd', 'e' and 2 more came new",
        ),
    ],
)
def test_label_difference_names_the_differences(theirs: list[LabelSpec], expected: str) -> None:
    assert label_difference([INTENT], theirs) == expected
