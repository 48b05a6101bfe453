"""Pairs across languages, against pairs that were written so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from featurestore import CrossedDataset
from syntax.errors import SpecError, UnknownNameError

from .streams import assert_all_same, ids


@pytest.fixture
def sides(store, make_handle, records, make_row, rows):
    """English and German pairs with the same ids, in another order; one is only English."""
    english = rows[:60]
    german = [
        replace(
            make_row(seq, (records[(seq * 3 + 1) % 40], records[(seq * 5 + 2) % 40]), row.labels),
            example_id=row.example_id,
        )
        for seq, row in enumerate(reversed(english[1:]))
    ]
    store.features.append(make_handle(lang="en"), english)
    store.features.append(make_handle(lang="de"), german)
    written = {row.example_id: row for row in german}
    crossed = [
        replace(
            row,
            segments=(row.segments[0], written[row.example_id].segments[1]),
            texts=(row.texts[0], written[row.example_id].texts[1]),
        )
        for row in english[1:]
    ]
    store.features.append(make_handle(name="written"), crossed)
    first, second = (store.dataset("pairs", lang=lang) for lang in ("en", "de"))
    return first, second, store.dataset("written")


@pytest.mark.parametrize("matrices", [("distance", "depth", "ancestor"), "stored"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_crossed_pairs_stream_as_if_they_had_been_written(sides, matrices, shuffle) -> None:
    first, second, written = sides
    crossed = CrossedDataset(first, second, ["hypothesis"])
    assert crossed.unmatched == ("ex-0",)
    assert len(crossed) == len(written) == 59
    options = {"batch_size": 7, "seed": 5, "shuffle": shuffle, "matrices": matrices}
    assert_all_same(crossed.stream(**options), written.stream(**options))


def test_any_fields_can_be_crossed(sides) -> None:
    first, second, written = sides

    def pieces(data) -> list[list[int]]:
        stream = data.stream(batch_size=1, shuffle=False)
        return [batch["input_ids"][0].tolist() for batch in stream]

    assert pieces(CrossedDataset(first, second, [])) == pieces(first)[1:]
    swapped = CrossedDataset(second, first, ["premise"])
    assert sorted(pieces(swapped)) == sorted(pieces(written))


def test_a_crossed_stream_resumes(sides) -> None:
    first, second, _ = sides
    crossed = CrossedDataset(first, second, ["hypothesis"])
    whole = ids(crossed.stream(batch_size=8))
    stream = crossed.stream(batch_size=8)
    for _ in range(3):
        next(stream)
    later = CrossedDataset(first, second, ["hypothesis"]).stream(batch_size=8)
    later.load_state_dict(stream.state_dict())
    assert ids(later) == whole[24:]
    other = CrossedDataset(first, second, ["premise"]).stream(batch_size=8)
    with pytest.raises(SpecError, match="another stream"):
        other.load_state_dict(stream.state_dict())


def test_crossing_refuses_datasets_that_do_not_match(
    sides, store, make_handle, make_row, records
) -> None:
    first, second, _ = sides
    with pytest.raises(UnknownNameError, match="hypothesis, premise"):
        CrossedDataset(first, second, ["premiss"])
    handle = make_handle(lang="fr")
    wrong = make_row(0, records[:2], {"label": "contradiction"})
    store.features.append(handle, [replace(wrong, example_id="ex-3")])
    with pytest.raises(SpecError, match="'ex-3' has the label"):
        CrossedDataset(first, store.dataset("pairs", lang="fr"), ["hypothesis"])
    again = replace(wrong, example_id="ex-3", example_key="a" * 32, seq=1)
    store.features.append(handle, [again])
    with pytest.raises(
        SpecError, match="the second dataset has several examples with the id 'ex-3'"
    ):
        CrossedDataset(first, store.dataset("pairs", lang="fr"), ["hypothesis"])
    with pytest.raises(SpecError, match="the first dataset has several examples with the id 'ex-"):
        CrossedDataset(store.dataset("pairs"), second, ["hypothesis"])
    with pytest.raises(SpecError, match="differing is 'skip'; it must be one of refuse, leave_out"):
        CrossedDataset(first, second, ["hypothesis"], differing="skip")
    with pytest.raises(SpecError, match=r"fields is 'hypothesis'; it must be a list"):
        CrossedDataset(first, second, "hypothesis")


def test_a_language_without_any_partner_is_refused(sides, store, make_handle, rows) -> None:
    first, _, _ = sides
    store.features.append(make_handle(lang="fr"), rows[70:80])
    with pytest.raises(SpecError, match="no example of 'pairs' in en has a partner in fr"):
        CrossedDataset(first, store.dataset("pairs", lang="fr"), ["hypothesis"])


def test_empty_selection_is_an_empty_dataset(sides) -> None:
    first, second, _ = sides
    none = CrossedDataset(first.where(langs=[]), second, ["hypothesis"])
    assert len(none) == 0
    assert list(none.stream()) == []


def test_examples_with_another_label_can_be_left_out_by_name(
    sides, store, make_handle, rows
) -> None:
    first, _, _ = sides
    french = [
        replace(row, labels={**row.labels, "note": "another"} if seq in (3, 5) else row.labels)
        for seq, row in enumerate(rows[:8])
    ]
    store.features.append(make_handle(lang="fr"), french)
    other = store.dataset("pairs", lang="fr")
    crossed = CrossedDataset(first, other, ["hypothesis"], differing="leave_out")
    assert crossed.differing == ("ex-3", "ex-5")
    assert len(crossed.unmatched) == 52
    assert ids(crossed.stream(shuffle=False)) == ["ex-0", "ex-1", "ex-2", "ex-4", "ex-6", "ex-7"]
