"""Datasets whose multiword tokens are expanded, as Syntax-MBERT's release expands them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients import Client
from clients.benchmarks import UD
from clients.expand import expanded, expanded_spec
from featurestore import open_store
from syntax.errors import SpecError, UnknownNameError
from syntax.examples import DatasetSpec, Example, LabelSpec, Rejection, Segment
from syntax.trees.conllu import parse_conllu

CONTRACTIONS = Path(__file__).parents[1] / "fixtures" / "conllu" / "french-contractions.conllu"
PAIRS = DatasetSpec("pairs", "dev", "en", ("premise", "hypothesis"), mode="sentence")
TAGGED = DatasetSpec(
    "tagged",
    "dev",
    "en",
    ("text",),
    (LabelSpec("ner_tags", "tags", ("O", "B-PER", "I-PER")),),
    mode="retokenize",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with Client.embedded(str(tmp_path_factory.mktemp("expand") / "store")) as client:
        yield client


def test_texts_become_the_words_of_their_parse(client) -> None:
    pair = Example("1", (Segment(text="I don't know."), Segment(text="He cannot go.")))
    gone = Rejection("2", "csv", "two fields")
    (found, rejected) = expanded(client, PAIRS, [pair, gone])
    assert [segment.tokens for segment in found.segments] == [
        ("I", "do", "n't", "know", "."),
        ("He", "can", "not", "go", "."),
    ]
    assert rejected == gone
    assert expanded_spec(PAIRS).mode == "pretokenized"


def test_the_tree_of_the_words_is_that_of_the_text(client) -> None:
    texts = ["I don't know, and Peter's friends can't either.", "She's gonna see it."]
    written = client.parse(texts=texts, parser="english-ewt", mode="sentence").parsed()
    words = client.parse(
        tokens=[item.parse.form for item in written], parser="english-ewt"
    ).parsed()
    assert len(written[0].parse.token_start) < written[0].parse.word_count
    for one, other in zip(written, words, strict=True):
        for column in ("form", "head", "deprel", "upos"):
            assert getattr(one.parse, column) == getattr(other.parse, column)


def test_unparsable_text_rejects_only_its_example(client) -> None:
    pairs = [
        Example("1", (Segment(text="Fine."), Segment(text=" "))),
        Example("2", (Segment(text="Fine."), Segment(text="It's ok."))),
    ]
    bad, good = expanded(client, PAIRS, pairs)
    assert (bad.example_id, bad.reason) == ("1", "empty_text")
    assert good.segments[1].tokens == ("It", "'s", "ok", ".")


def test_each_word_of_a_token_repeats_its_tag(client) -> None:
    example = Example(
        "1",
        (Segment(tokens=("Peter's", "friends", "know")),),
        {"ner_tags": ("B-PER", "O", "O")},
    )
    (found,) = expanded(client, TAGGED, [example])
    assert found.segments[0].tokens == ("Peter", "'s", "friends", "know")
    assert found.labels == {"ner_tags": ("B-PER", "B-PER", "O", "O")}


def test_multiword_tokens_can_stay_before_their_words(client) -> None:
    """As in lr-sib, whose list of Stanza's tokens has ranges and their words."""
    text = Example("1", (Segment(text="I don't know."), Segment(text="He cannot go.")))
    (found,) = expanded(client, PAIRS, [text], keep_tokens=True)
    assert [segment.tokens for segment in found.segments] == [
        ("I", "don't", "do", "n't", "know", "."),
        ("He", "cannot", "can", "not", "go", "."),
    ]
    tokens = Segment(tokens=("Peter's", "friends", "know"))
    tagged = Example("1", (tokens,), {"ner_tags": ("B-PER", "O", "O")})
    (found,) = expanded(client, TAGGED, [tagged], keep_tokens=True)
    assert found.segments[0].tokens == ("Peter's", "Peter", "'s", "friends", "know")
    assert found.labels == {"ner_tags": ("B-PER", "B-PER", "B-PER", "O", "O")}
    gold = DatasetSpec("ud", "dev", "fr", ("text",), mode="gold")
    with pytest.raises(SpecError, match="ud has mode gold"):
        expanded(client, gold, [], keep_tokens=True)


def test_expanded_tokens_without_tags_have_no_tags(client) -> None:
    blind = Example("1", (Segment(tokens=("Peter's", "friends")),), {"ner_tags": None})
    (found,) = expanded(client, TAGGED, [blind])
    assert found.segments[0].tokens == ("Peter", "'s", "friends")
    assert found.labels == {"ner_tags": None}


def test_gold_trees_lose_their_ranges_and_nothing_else(client) -> None:
    spec = DatasetSpec("ud", "dev", "fr", ("text",), mode="gold")
    conllu = CONTRACTIONS.read_text("utf-8")
    (found,) = expanded(client, spec, [Example("1", (Segment(conllu=conllu),))])
    (before,), (after,) = map(list, map(parse_conllu, (conllu, found.segments[0].conllu)))
    assert after.text == "Le chat de le voisin va à le marché ."
    assert [word.head for word in after.words] == [word.head for word in before.words]
    assert [token.form for token in after.tokens] == [word.form for word in before.words]
    assert after.sent_id == before.sent_id
    assert expanded_spec(spec) == spec


@pytest.mark.parametrize("mode", ["raw", "pretokenized"])
def test_a_mode_without_one_sentence_of_multiword_tokens_is_refused(client, mode) -> None:
    spec = DatasetSpec("any", "dev", "en", ("text",), mode=mode)
    with pytest.raises(SpecError, match=f"mode '{mode}' .*choose the mode sentence, retokenize"):
        expanded(client, spec, [])


def test_labels_of_characters_are_refused(client) -> None:
    labels = (LabelSpec("answers", "spans"),)
    spec = DatasetSpec("any", "dev", "en", ("text",), labels, mode="sentence")
    with pytest.raises(SpecError, match="the label answers of any names characters"):
        expanded(client, spec, [])


@pytest.mark.slow
def test_expanded_examples_can_be_sent_by_the_same_client(client) -> None:
    pair = Example("1", (Segment(text="I don't."), Segment(text="He cannot.")))
    job = client.backfill(expanded_spec(PAIRS), expanded(client, PAIRS, [pair]))
    assert client.wait(job.id).counts.stored == 1


def test_expansion_errors_are_raised_before_sending(client) -> None:
    pair = Example("1", (Segment(text="Fine."), Segment(text="Fine.")))
    with pytest.raises(UnknownNameError, match="udpipe/unknown"):
        expanded(client, PAIRS, [pair], parser="udpipe/unknown")


@pytest.mark.slow
def test_a_backfill_sends_words(parsebank, store, tmp_path) -> None:
    table = tmp_path / "train.tsv"
    table.write_text("one\ttwo\nI don't know.\tHe cannot go.\nIt's.\t\n", "utf-8")
    place = ("backfill", "table", "--path", table, "--split", "train", "--lang", "en")
    columns = ("--columns", "premise=one", "--columns", "hypothesis=two", "--mode", "sentence")
    report = tmp_path / "report.json"
    options = ("--name", "words", "--report", report, "--parser", "en:udpipe/english-ewt")
    result = parsebank(*place, *columns, "--expand-words", *options)
    assert result.exit_code == 0, result.output
    (job,) = json.loads(report.read_text("utf-8"))["jobs"]
    assert (job["counts"]["stored"], job["counts"]["dropped"]) == (1, {"empty_text": 1})
    with open_store(store) as opened:
        data = opened.dataset("words")
        (batch,) = data.stream(batch_size=2, matrices=())
        assert data.spec.mode == "pretokenized"
        assert batch["word_ids"].max() == 4
    query = "select texts from examples where dataset = 'words'"
    (row,) = json.loads(parsebank("store", "sql", query, "--json").stdout)
    assert row["texts"] == ["I do n't know .", "He can not go ."]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--expand-words", "--dry-run"), "--expand-words parses every text"),
        (("--keep-tokens",), "--keep-tokens says what --expand-words leaves"),
    ],
)
def test_options_that_contradict_expansion_are_refused(parsebank, options, told) -> None:
    place = ("backfill", "sample", "--split", "dev", "--lang", "en", "--mode", "sentence")
    result = parsebank(*place, *options)
    assert result.exit_code == 1
    assert told in result.stderr


@pytest.mark.slow
def test_a_french_text_reads_as_in_the_release(data_dir, tmp_path) -> None:
    """Words that the release's own converter gives for this text, with the same model."""
    spec = DatasetSpec("any", "dev", "fr", ("text",), mode="sentence")
    example = Example("1", (Segment(text="Le chat du voisin parle au chien. Il dort."),))
    models = str(data_dir / "models" / "udpipe")
    with Client.embedded(str(tmp_path / "store"), models_dir=models) as french:
        (found,) = expanded(french, spec, [example], parser="udpipe/french-partut")
    words = "Le chat de le voisin parle à le chien . Il dort ."
    assert " ".join(found.segments[0].tokens) == words


@pytest.mark.slow
def test_multiword_tokens_of_a_treebank_are_expanded(client, data_dir) -> None:
    spec = UD.spec("test", "fr", path=data_dir / "treebanks" / "UD_French-PUD", mode="gold")
    items = list(UD.read(data_dir / "treebanks" / "UD_French-PUD", "test", "fr", "gold"))
    texts = [next(parse_conllu(item.segments[0].conllu)) for item in items]
    after = [next(parse_conllu(item.segments[0].conllu)) for item in expanded(client, spec, items)]
    changed = sum(len(a.tokens) < len(b.tokens) for a, b in zip(texts, after, strict=True))
    assert (changed, len(items)) == (412, 1000)
    assert not any(token.is_multiword for sentence in after for token in sentence.tokens)
