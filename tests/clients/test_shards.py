"""Shards of an array job: each item in one, whatever the others do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.client.client import Client
from clients.client.staging import Upload
from clients.cut import cut_items
from clients.expand import expanded
from clients.shards import Shard
from service.tokenizers import bundled_tokenizers
from syntax.errors import SpecError
from syntax.examples import DatasetSpec, Example, Rejection, Segment

TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)


def example(number: int, *texts: str) -> Example:
    return Example(str(number), tuple(Segment(text=text) for text in texts))


@given(st.lists(st.tuples(TEXTS, TEXTS)), st.integers(1, 9))
def test_each_item_is_in_exactly_one_shard(texts: list[tuple[str, str]], total: int) -> None:
    items = [
        Rejection(first, "example", "") if n % 5 == 4 else example(n, first, second)
        for n, (first, second) in enumerate(texts)
    ]
    shards = [Shard(k + 1, total) for k in range(total)]
    assert all(sum(shard.has(item) for shard in shards) == 1 for item in items)


def test_examples_about_one_passage_share_a_shard() -> None:
    passage = "A passage that is longer than any question about it."
    shard = Shard.read("3/7")
    asked = [example(n, f"Question {n}?", passage) for n in range(50)]
    assert len(set(map(shard.has, asked))) == 1
    tokens = [Example(str(n), (Segment(tokens=("a", "b")),)) for n in range(5)]
    assert len(set(map(shard.has, tokens))) == 1


def test_shards_are_of_similar_size() -> None:
    items = [example(n, f"Text {n}.") for n in range(8_000)]
    sizes = [sum(map(Shard(k, 8).has, items)) for k in range(1, 9)]
    assert all(850 < size < 1_150 for size in sizes)


def test_a_shard_leaves_room_for_the_others() -> None:
    items = [example(n, f"Text {n}.") for n in range(20)]
    sent = list(Shard(2, 3).of(items))
    assert [item if Shard(2, 3).has(item) else None for item in items] == sent
    lines = b"".join(Upload({"shard": "2/3"}, sent)).split(b"\n")[1:-1]
    numbers = [n for n, line in enumerate(lines) if line]
    assert numbers == [n for n, item in enumerate(sent) if item]
    assert json.loads(lines[numbers[0]])["example"]["example_id"] == str(numbers[0])


def test_expansion_and_cutting_leave_room_for_the_others() -> None:
    conllu = "1\tHi\t_\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
    item = Example("1", (Segment(conllu=conllu),))
    spec = DatasetSpec("x", "dev", "en", ("text",), mode="gold")
    (folder,) = bundled_tokenizers().values()
    with Client() as unused:
        found = list(expanded(unused, spec, [None, item, None]))
    assert [each is None for each in found] == [True, False, True]
    assert list(cut_items(spec, [None, item], folder, 8)) == [None, item]


def test_no_items_at_all_are_an_error() -> None:
    with pytest.raises(SpecError, match="no examples"):
        list(Shard(1, 2).of([]))


@pytest.mark.parametrize("given", ["0/4", "5/4", "4", "1/0", "-1/4", "a/b", "1/4/2", ""])
def test_a_shard_is_k_of_n(given: str) -> None:
    with pytest.raises(SpecError, match="expected K/N"):
        Shard.read(given)
