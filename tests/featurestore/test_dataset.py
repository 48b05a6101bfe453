from __future__ import annotations

from dataclasses import replace

import pytest

from featurestore import Drop, open_store
from syntax import fingerprint
from syntax.errors import SpecError, UnknownDatasetError, UnknownNameError, UnknownParserError

from .conftest import TOKENIZER
from .streams import ids

OTHER = fingerprint({"name": "other"})
FRENCH = fingerprint({"name": "french"})


def test_a_dataset_knows_its_length_fields_and_tokens(filled, special_tokens) -> None:
    data = filled.dataset("pairs", tokenizer="toy", split="train", lang="en")
    assert len(data) == 100
    assert data.version == 4
    assert data.special_tokens == special_tokens
    assert data.spec.fields == ("premise", "hypothesis")
    assert data.spec.labels[0].names == ("entailment", "neutral", "contradiction")
    assert (data.spec.source, data.spec.licence) == ("written for the tests", "Apache-2.0")
    assert (data.spec.split, data.spec.lang) == ("train", "en")


def test_a_pinned_version_does_not_grow(filled, handle, rows) -> None:
    pinned = filled.dataset("pairs", version=2)
    assert len(pinned) == 50
    filled.features.append(handle, rows[:0])
    assert len(filled.dataset("pairs", version=2)) == 50
    written = [*rows[:25], *rows[50:75]]
    assert sorted(ids(pinned.stream())) == sorted(row.example_id for row in written)
    with pytest.raises(UnknownDatasetError, match="no version 7; it has 0 to 4"):
        filled.dataset("pairs", version=7)


def test_a_version_survives_compaction_with_its_order(filled) -> None:
    before = filled.dataset("pairs")
    order = ids(before.stream(batch_size=7, seed=3))
    filled.compact()
    after = filled.dataset("pairs")
    assert after.version > before.version
    assert after.fingerprints["examples"] == before.fingerprints["examples"]
    assert ids(after.stream(batch_size=7, seed=3)) == order
    again = filled.dataset("pairs", version=before.version)
    assert ids(again.stream(batch_size=7, seed=3)) == order


def test_order_does_not_depend_on_the_order_of_writers(store, handle, rows, tmp_path) -> None:
    with open_store(tmp_path / "twin") as twin:
        for start in (75, 25, 0, 50):
            twin.features.append(handle, rows[start : start + 25])
        store.features.append(handle, rows)
        ours, theirs = store.dataset("pairs"), twin.dataset("pairs")
        assert ours.fingerprints == theirs.fingerprints
        assert ids(ours.stream(batch_size=9)) == ids(theirs.stream(batch_size=9))


def test_splits_must_be_chosen_and_languages_may(store, make_handle, rows) -> None:
    store.features.append(make_handle(), rows[:10])
    store.features.append(make_handle(lang="de"), rows[:5])
    store.features.append(make_handle(split="dev"), rows[:3])
    assert len(store.dataset("pairs", split="train")) == 15
    assert len(store.dataset("pairs", split="train", lang="de")) == 5
    assert store.dataset("pairs", split="train").spec.lang == "*"
    with pytest.raises(SpecError, match="the splits dev, train; choose one, such as `split=dev`"):
        store.dataset("pairs")
    with pytest.raises(UnknownDatasetError, match=r"dev/de.*Known: dev/en, train/de, train/en"):
        store.dataset("pairs", split="dev", lang="de")


@pytest.mark.parametrize("lang", [[], ()])
def test_empty_choice_of_languages_is_refused(filled, lang) -> None:
    with pytest.raises(SpecError, match=r"names no language; None reads all of them"):
        filled.dataset("pairs", lang=lang)
    assert len(filled.dataset("pairs", lang=None)) == len(filled.dataset("pairs", lang="*")) == 100


def test_two_parsers_in_one_language_need_a_choice(filled, handle, rows, make_row, records) -> None:
    others = [make_row(n, (records[n], records[n + 1]), parser=OTHER) for n in range(7)]
    filled.features.append(handle, others)
    parser = rows[0].parser
    filled.describe(parser, "parser", {"name": "gold"})
    filled.describe(OTHER, "parser", {"name": "udpipe/other"})
    with pytest.raises(SpecError, match=rf"parsed by .*gold \({parser[:12]}\).*`parser="):
        filled.dataset("pairs")
    assert len(filled.dataset("pairs", parser="udpipe/other")) == 7
    assert len(filled.dataset("pairs", parser=parser[:8])) == 100
    assert filled.dataset("pairs", parser="gold").parsers == {parser: {"name": "gold"}}
    with pytest.raises(UnknownParserError, match="Known: gold, udpipe/other"):
        filled.dataset("pairs", parser="stanza/en")


def test_each_language_may_have_a_parser_of_its_own(store, make_handle, make_row, records) -> None:
    store.features.append(make_handle(), [make_row(0, records[:2])])
    store.features.append(make_handle(lang="de"), [make_row(0, records[:2], parser=OTHER)])
    assert len(store.dataset("pairs").parsers) == 2


@pytest.fixture
def bilingual(store, make_handle, make_row, records):
    """English by two parsers, French by a third."""
    store.features.append(make_handle(), [make_row(n, records[:2]) for n in range(4)])
    store.features.append(make_handle(), [make_row(9, records[2:4], parser=OTHER)])
    store.features.append(make_handle(lang="fr"), [make_row(3, records[:2], parser=FRENCH)])
    for parser, name in ((records[0].parser, "gold"), (OTHER, "stanza/en"), (FRENCH, "stanza/fr")):
        store.describe(parser, "parser", {"name": name})
    return store


@pytest.mark.parametrize("lang", ["en,fr", ["en", "fr"], "*"])
def test_parser_choice_must_not_drop_a_requested_language(bilingual, lang) -> None:
    with pytest.raises(SpecError, match=r"train/en .* as `parser=en:(gold|stanza/en)`"):
        bilingual.dataset("pairs", lang=lang)
    with pytest.raises(UnknownParserError, match=r"'fr' .* stanza/fr .*, not by 'gold'") as caught:
        bilingual.dataset("pairs", lang=lang, parser="gold")
    assert "`parser=en:gold,fr:stanza/fr`" in caught.value.message
    assert bilingual.dataset("pairs", lang=lang, parser="en:gold").langs == {"en": 4, "fr": 1}


@pytest.mark.parametrize(
    "asked", [{"lang": "fr", "parser": "stanza/fr"}, {"parser": "fr:stanza/fr"}]
)
def test_parser_choice_must_not_drop_a_split_of_a_requested_language(
    bilingual, make_handle, make_row, records, asked
) -> None:
    gold = [make_row(5, records[:2])]
    bilingual.features.append(make_handle(lang="fr", split="test"), gold)
    lost = r"test/fr of dataset 'pairs' was parsed by gold .*, not by 'stanza/fr'; .*`split=test`"
    with pytest.raises(UnknownParserError, match=lost):
        bilingual.dataset("pairs", split="*", **{"lang": "fr", **asked})
    data = bilingual.dataset("pairs", split="*", parser="stanza/fr")
    assert data.parts == (("train", "fr"),)  # whatever it has parsed
    assert len(bilingual.dataset("pairs", split="test", lang="fr", parser="gold")) == 1


def test_each_language_may_be_read_as_parsed_by_another(bilingual) -> None:
    for parser in ("en:stanza/en,fr:stanza/fr", {"en": OTHER[:8], "fr": FRENCH[:8]}):
        data = bilingual.dataset("pairs", parser=parser)
        assert data.langs == {"en": 1, "fr": 1}
        assert set(data.parsers) == {OTHER, FRENCH}
    assert bilingual.dataset("pairs", parser="gold,fr:stanza/fr").langs == {"en": 4, "fr": 1}
    assert bilingual.dataset("pairs", parser="gold").langs == {"en": 4}  # in whatever language
    with pytest.raises(UnknownParserError, match="'fr' of dataset 'pairs' was parsed by stanza/fr"):
        bilingual.dataset("pairs", parser="en:gold,fr:gold")
    with pytest.raises(UnknownNameError, match="chosen for 'de', which is not read here"):
        bilingual.dataset("pairs", parser="en:gold,de:gold")
    with pytest.raises(SpecError, match="'en:gold' is a second parser for en"):
        bilingual.dataset("pairs", parser="en:stanza/en,en:gold")


def test_of_two_parsers_with_one_name_a_fingerprint_is_named(
    bilingual, make_handle, make_row, records
) -> None:
    newer = fingerprint({"name": "newer"})
    bilingual.describe(newer, "parser", {"name": "gold"})
    bilingual.features.append(make_handle(), [make_row(7, records[2:4], parser=newer)])
    with pytest.raises(SpecError, match=r"as `parser=en:[0-9a-f]{12},fr:stanza/fr`$") as caught:
        bilingual.dataset("pairs", parser="en:gold,fr:stanza/fr")
    (chosen,) = [text for text in caught.value.message.split("`") if text.startswith("parser=")]
    data = bilingual.dataset("pairs", parser=chosen.removeprefix("parser="))
    assert data.langs["fr"] == 1


def test_mode_does_not_depend_on_the_order_of_writers(store, handle, rows, tmp_path) -> None:
    modes = [replace(handle, spec=replace(handle.spec, mode=mode)) for mode in ("raw", "gold")]
    with open_store(tmp_path / "twin") as twin:
        for one, order in ((store, modes), (twin, modes[::-1])):
            for start, written in enumerate(order):
                one.features.append(written, [rows[start]])
        assert store.dataset("pairs").spec.mode == twin.dataset("pairs").spec.mode
        twin.compact()
        assert store.dataset("pairs").spec.mode == twin.dataset("pairs").spec.mode


def test_the_report_counts_what_is_missing_by_reason(filled, rows, make_row, records) -> None:
    assert filled.dataset("pairs").report == {}
    gone = [make_row(1000 + n, (records[n], records[n])) for n in range(3)]
    drop = Drop("pairs", TOKENIZER, "train", "en", "job-1", "", "", "text_too_long", "it says why")
    first, second, third, stored = (
        replace(drop, example_id=row.example_id, example_key=row.example_key)
        for row in (*gone, rows[0])
    )
    filled.drops.append([first, second, replace(third, reason="no_sentence")])
    filled.drops.append([replace(first, job="job-2")])
    filled.drops.append([replace(stored, reason="deadline")])  # stored by a later try
    filled.drops.append([replace(first, dataset="elsewhere")])
    filled.drops.append([replace(drop, example_id="line-9", reason="example")])  # no key
    data = filled.dataset("pairs")
    assert data.report == {"text_too_long": 2, "no_sentence": 1, "example": 1}
    assert {drop.example_id for drop in data.drops()} == {
        *("ex-1000", "ex-1001", "ex-1002", "line-9"),
    }


def test_reports_are_in_the_order_of_the_versions_they_built(filled) -> None:
    data = filled.dataset("pairs", split="train", lang="en")
    where = {"dataset": "pairs", "tokenizer": data.card.tokenizer_fingerprint}
    for version in (3, 1, 4, 2):
        report = {**where, "split": "train", "lang": "en", "version": version}
        filled.describe(fingerprint(report), "report", report)
    assert [report["version"] for report in data.reports] == [1, 2, 3, 4]


def test_sequence_order_is_by_language_and_seq(store, make_handle, rows) -> None:
    store.features.append(make_handle(lang="en"), [rows[2], rows[0]])
    store.features.append(make_handle(lang="de"), [rows[5], rows[1]])
    batch = next(store.dataset("pairs").stream(shuffle=False))
    assert batch["example_id"] == ["ex-1", "ex-5", "ex-0", "ex-2"]


def test_examples_are_chosen_by_label_and_length(filled, rows) -> None:
    data = filled.dataset("pairs")
    chosen = data.where(labels={"label": ["neutral"], "score": [0.125, 0.5, 2.0]}, longest=60)
    expected = [
        row.example_id
        for row in rows
        if row.labels["label"] == "neutral"
        and row.labels["score"] in (0.125, 0.5, 2.0)
        and sum(map(len, row.segments)) <= 60
    ]
    assert 0 < len(expected) < len(rows)
    assert ids(chosen.stream(shuffle=False)) == expected
    assert len(chosen) == len(expected)
    assert chosen.fingerprints["examples"] != data.fingerprints["examples"]
    assert len(data.where(shortest=61)) + len(data.where(longest=60)) == len(data)


def test_examples_without_a_label_can_be_chosen(store, handle, make_row, records) -> None:
    store.features.append(
        handle, [make_row(0, records[:2]), make_row(1, records[:2], {"label": "neutral"})]
    )
    data = store.dataset("pairs")
    for names, found in (([None], [0]), (["neutral"], [1]), (["neutral", None], [0, 1])):
        chosen = data.where(labels={"label": names})
        assert ids(chosen.stream(shuffle=False)) == [f"ex-{number}" for number in found]


def test_examples_are_chosen_by_language(store, make_handle, rows) -> None:
    for lang in ("en", "de", "fr"):
        store.features.append(make_handle(lang=lang), rows[:5])
    data = store.dataset("pairs")
    assert data.where(langs=["de", "fr"]).parts == (("train", "de"), ("train", "fr"))
    assert data.where(langs=["de", "fr"]).langs == {"de": 5, "fr": 5}
    assert len(data.where(langs=[])) == 0
    assert store.dataset("pairs", lang="fr, de").langs == {"de": 5, "fr": 5}
    assert len(store.dataset("pairs", lang=["en", "fr", "en"])) == 10


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_a_limit_takes_the_first_of_each_language_by_their_keys(
    store, make_handle, rows, limit
) -> None:
    for lang in ("en", "de"):
        store.features.append(make_handle(lang=lang), rows[:20] if lang == "de" else rows)
    data = store.dataset("pairs")
    wanted = data.where(labels={"label": ["neutral"]})
    neutral = [row for row in rows if row.labels["label"] == "neutral"]
    for lang, among in (("en", neutral), ("de", [row for row in neutral if row.seq < 20])):
        first = sorted(among, key=lambda row: row.example_key)[:limit]
        chosen = data.where(labels={"label": ["neutral"]}, limit=limit).where(langs=[lang])
        expected = [row.example_id for row in sorted(first, key=lambda row: row.seq)]
        assert ids(chosen.stream(shuffle=False)) == expected
    assert ids(wanted.where(limit=limit).stream()) == ids(
        data.where(labels={"label": ["neutral"]}, limit=limit).stream()
    )
    with pytest.raises(SpecError, match="limit is 0; it must be at least 1"):
        data.where(limit=0)


def test_a_language_without_examples_here_is_refused(store, make_handle, rows) -> None:
    store.features.append(make_handle(lang="den"), rows[:5])
    store.features.append(make_handle(lang="en", split="test"), rows[:5])
    data = store.dataset("pairs", split="train")
    assert len(data.where(langs=["den"])) == 5
    with pytest.raises(UnknownDatasetError, match=r"language of the examples 'en'.*Known: den"):
        data.where(langs=["en", "den"])  # only in another split
    with pytest.raises(UnknownDatasetError, match=r"part of dataset .*'train/en'"):
        store.dataset("pairs", split="train", lang="en,den")
    with pytest.raises(SpecError, match=r"langs is 'den'; it must be a list: \['den'\]"):
        data.where(langs="den")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"labels": {"note": "note 1"}}, r"labels\['note'\] is 'note 1'; it must be a list"),
        ({"labels": {"score": 0.5}}, r"labels\['score'\] is 0\.5; it must be a list"),
        ({"labels": {"score": ["1"]}}, "is '1'; a label of kind 'float' is a number, or None"),
        ({"labels": {"note": [5]}}, "is 5; a label of kind 'string' is a text, or None"),
        ({"labels": {"label": [1]}}, "is 1; a label of kind 'class' is a text, or None"),
        ({"labels": ["note"]}, "it must be a mapping"),
        ({"longest": "60"}, "longest is '60'; it must be a whole number"),
        ({"shortest": None}, "shortest is None; it must be a whole number"),
        ({"limit": 2.5}, "limit is 2.5; it must be a whole number"),
    ],
)
def test_filter_values_must_have_the_type_of_the_label(filled, wanted, message) -> None:
    with pytest.raises(SpecError, match=message):
        filled.dataset("pairs").where(**wanted)


def test_filters_that_no_example_can_match_are_refused(filled) -> None:
    data = filled.dataset("pairs")
    with pytest.raises(UnknownNameError, match="label, note, score"):
        data.where(labels={"labels": ["neutral"]})
    with pytest.raises(UnknownNameError, match="entailment"):
        data.where(labels={"label": ["maybe"]})
    with pytest.raises(SpecError, match="at least 9 and at most 3"):
        data.where(shortest=9, longest=3)
