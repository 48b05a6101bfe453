from __future__ import annotations

import json

import pytest

from clients.benchmarks import BENCHMARKS
from syntax.examples import TOKEN_MODES, Example, SpanLabel
from syntax.trees.conllu import parse_conllu, parse_from_sentences

ACE = BENCHMARKS["ace"]


@pytest.fixture
def folder(benchmark_files):
    return benchmark_files / "ace"


@pytest.fixture
def record(folder):
    return json.loads((folder / "English/train.json").read_text("utf-8"))[0]


@pytest.fixture
def read(tmp_path):
    """The items of records that are written to a file first."""

    def items(*records, mode="gold"):
        path = tmp_path / "odd.json"
        path.write_text(json.dumps(records), "utf-8")
        return list(ACE.read(path, "dev", "en", mode))

    return items


def test_parts_are_called_after_their_languages(folder):
    parts = [(part.split, part.lang) for part in ACE.parts(folder)]
    assert parts == [("dev", "ar"), ("dev", "en"), ("train", "en")]


def test_mentions_are_characters_of_the_joined_tokens(folder):
    item = next(ACE.read(folder, "train", "en", "pretokenized"))
    text = " ".join(item.segments[0].tokens)
    (subject,), (object_,) = item.labels["subject"], item.labels["object"]
    assert text[subject.start_char : subject.end_char] == "Anna Kerven"
    assert (text[object_.start_char : object_.end_char], object_.label) == ("Brest Choir", "ORG")
    assert item.labels["relation"] == "ORG-AFF:Membership"
    assert item.labels["ner"] == ("PER", "PER", "O", "O", "O", "LOC", "ORG", "O")


@pytest.mark.parametrize(("split", "lang"), [("train", "en"), ("dev", "ar")])
def test_gold_trees_are_those_of_the_file(folder, split, lang):
    gold = next(ACE.read(folder, split, lang))
    given = next(ACE.read(folder, split, lang, "retokenize"))
    (sentence,) = parse_conllu(gold.segments[0].conllu)
    path = folder / {"en": "English", "ar": "Arabic"}[lang] / f"{split}.json"
    record = json.loads(path.read_text("utf-8"))[0]
    assert [str(word.head) for word in sentence.words] == record["stanford_head"]
    assert [word.deprel for word in sentence.words] == record["stanford_deprel"]
    assert [word.upos for word in sentence.words] == record["stanford_pos"]
    assert parse_from_sentences([sentence]).text == " ".join(given.segments[0].tokens)
    assert gold.labels == given.labels


def test_reversed_mentions_are_turned_and_counted(folder):
    items = list(ACE.read(folder, "train", "en"))
    assert [item.repairs for item in items] == [(), (), ("span_reversed",)]
    assert items[2].labels["subject"] == (SpanLabel(27, 42, "ORG"),)


def test_heads_that_form_no_tree_are_rejected_in_mode_gold_only(folder):
    fate = {
        mode: {
            x.example_id: getattr(x, "reason", None) for x in ACE.read(folder, "dev", "en", mode)
        }
        for mode in ACE.modes
    }
    assert fate["gold"] == {
        "d1": None,
        "cycle": "cycle",
        "rootless": "no_root",
        "outside": "label",
        "d1#2": None,
    }
    others = dict.fromkeys(fate["gold"]) | {"outside": "label"}
    assert all(fate[mode] == others for mode in TOKEN_MODES)


def test_names_are_those_of_every_file_below_the_path(folder):
    names = {label.name: label.names for label in ACE.spec("dev", "ar", path=folder).labels}
    relations = ("ORG-AFF:Membership", "PART-WHOLE:Geographical", "no_relation")
    assert names == {
        "relation": relations,
        "subject": ("ORG", "PER"),
        "object": ("EVT", "GPE", "ORG", "PER"),
        "ner": ("O", "LOC", "ORG", "PER"),
    }


def test_a_file_that_breaks_off_still_gives_names(tmp_path, record):
    whole = json.dumps([record | {"relation": "first"}, {"relation": ["odd", 3]}, record])
    path = tmp_path / "cut.json"
    path.write_text(whole[:-60], "utf-8")
    labels = ACE.spec("dev", "en", path=path).labels
    assert labels[0].names == ("first", "odd")
    *_, last = ACE.read(path, "dev", "en")
    assert (last.example_id, last.reason) == ("cut.json", "example")


@pytest.mark.parametrize(
    ("change", "reason", "said"),
    [
        ({"token": None}, "example", "'token' is None; expected a list of strings"),
        ({"stanford_ner": ["O"]}, "label", "8 tokens and 1 tags"),
        ({"token": ["Anna", " ", *"quietly"[:6]]}, "empty_token", "token 1 is empty"),
        ({"subj_start": "0"}, "label", "subj_start and subj_end are '0' and 1; expected the"),
        ({"obj_end": 8}, "label", "positions of two of its 8 words"),
        ({"obj_end": -1}, "label", "positions of two of its 8 words"),
        ({"relation": 3}, "example", "'relation' is 3; expected a text"),
        ({"stanford_head": ["x"] * 8}, "example", "the head 'x' is no number"),
        ({"stanford_head": ["0"] * 8}, "multiple_roots", ""),
        ({"stanford_head": ["9"] * 8}, "head_out_of_range", ""),
        ({"stanford_pos": ["NOUN"]}, "example", "a pos, head and deprel for each of its tokens"),
        ({"token": ["a\tb"] * 8}, "example", "fits into no CoNLL-U"),
        ({"subj_type": "caf\udce9"}, "invalid_character", "not UTF-8"),
    ],
)
def test_faults_are_named(read, record, change, reason, said):
    good, bad = read(record, record | {"id": "bad"} | change)
    assert isinstance(good, Example)
    assert (bad.example_id, bad.reason) == ("bad", reason)
    assert said in bad.message


def test_records_without_an_id_are_numbered(read, record):
    del record["id"]
    assert [item.example_id for item in read(record, 7, record)] == ["dev-1", "dev-2", "dev-3"]
