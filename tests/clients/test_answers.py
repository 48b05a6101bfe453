from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks import BENCHMARKS
from clients.benchmarks.answers import NEAR, located
from syntax.errors import InputError, LabelError
from syntax.examples import Example, Rejection, SpanLabel

MLQA, SQUAD, TYDIQA, XQUAD = (BENCHMARKS[name] for name in ("mlqa", "squad", "tydiqa", "xquad"))


def answer_texts(example: Example) -> list[str]:
    passage = example.segments[1].text
    return [passage[span.start_char : span.end_char] for span in example.labels["answers"] or ()]


def by_id(reader, folder, split, lang):
    return {item.example_id: item for item in reader.read(folder, split, lang)}


def gold_texts(path) -> list[list[str]]:
    """Answers with a text, question by question, as plain code takes them from the file."""
    articles = json.loads(path.read_text("utf-8"))["data"]
    questions = [q for a in articles for p in a["paragraphs"] for q in p["qas"]]
    return [[answer["text"] for answer in q["answers"] if answer["text"]] for q in questions]


def test_a_question_has_its_passage_and_the_spans_of_all_its_answers(benchmark_files):
    item = next(SQUAD.read(benchmark_files / "squad", "dev", "en"))
    assert [segment.text[:13] for segment in item.segments] == ["What does the", "The old light"]
    assert answer_texts(item) == ["oil", "burns oil", "oil"]
    assert item.labels["answers"][0] == SpanLabel(36, 39, "")
    assert item.labels["answerable"] == "yes"
    assert item.repairs == ()


def test_an_unanswerable_question_has_no_span(benchmark_files):
    item = by_id(SQUAD, benchmark_files / "squad", "train", "en")["s2"]
    assert item.labels == {"answers": (), "answerable": "no"}


def test_displaced_answers_are_found_near_by_or_rejected_with_both_texts(benchmark_files):
    path = benchmark_files / "squad/bad/displaced-answers.json"
    items = by_id(SQUAD, path, "dev", "en")
    assert answer_texts(items["near"]) == ["212"]
    assert items["near"].repairs == ("answer_moved",)
    assert answer_texts(items["before"]) == ["The"]
    messages = {name: items[name].message for name in ("twice", "gone", "far")}
    assert (
        "the answer 'the painter' is not at character 3, where the passage has" in messages["gone"]
    )
    assert "' old lighth', and stands 0 times within 50 characters" in messages["gone"]
    assert "stands 0 times" in messages["far"]
    assert "correct the offset" in messages["twice"]
    assert {items[name].reason for name in messages} == {"label"}


def test_a_file_that_contradicts_itself_is_rejected(benchmark_files):
    items = list(SQUAD.read(benchmark_files / "squad/bad/contradicting.json", "dev", "en"))
    assert [item.reason for item in items] == ["label", "label"]
    assert "'is_impossible' is True, but there are 1 answers" in items[0].message
    assert "'is_impossible' is False, but there are 0 answers" in items[1].message


@given(st.text("ab🏮", max_size=120), st.integers(0, 200), st.text("ab🏮", min_size=1, max_size=3))
def test_located_agrees_with_its_slow_twin(passage, offset, text):
    starts = [i for i in range(len(passage)) if passage[i : i + len(text)] == text]
    near = [start for start in starts if abs(start - offset) <= NEAR]
    expected = offset if offset in starts else near[0] if len(near) == 1 else None
    if expected is None:
        with pytest.raises(LabelError, match="is not at character"):
            located(passage, (offset, text), "here")
        return
    span, moved = located(passage, (offset, text), "here")
    assert (span, moved) == (SpanLabel(expected, expected + len(text)), expected != offset)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ('{"data": [7]}', "'question' is None; expected a text"),
        ('{"data": [{"paragraphs": [{"context": "A."}]}]}', "'question' is None"),
        ('{"data": [{"paragraphs": [{"qas": [{"question": "Q?"}]}]}]}', "'context' is None"),
        (
            '{"data": [{"paragraphs": [{"context": "A.", "qas": [{"question": "Q?", '
            '"answers": [{"text": "A"}]}]}]}]}',
            "'answers' is [{'text': 'A'}]; expected a list of",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "A.", "qas": [{"question": "Q?", '
            '"answers": null}]}]}]}',
            "'answers' is None",
        ),
    ],
)
def test_a_malformed_record_is_rejected_by_its_place(tmp_path, broken, said):
    path = tmp_path / "odd.json"
    path.write_text(broken, "utf-8")
    (item,) = XQUAD.read(path, "test", "en")
    assert isinstance(item, Rejection)
    assert item.message.startswith("odd.json, data[0].paragraphs[0].qas[0]: ")
    assert said in item.message


def test_a_document_that_breaks_off_keeps_what_was_read(tmp_path, benchmark_files):
    whole = (benchmark_files / "tydiqa/tydiqa-goldp-v1.1-train.json").read_bytes()
    article = json.loads(whole)["data"][0]
    path = tmp_path / "cut.json"
    path.write_bytes(json.dumps({"data": [article, article]}).encode()[:-40])
    *items, last = TYDIQA.read(path, "train", "en")
    assert [item.example_id for item in items] == ["english-17-0", "english-17-1"]
    assert (last.example_id, last.reason) == ("cut.json", "example")


@pytest.mark.parametrize("blind", [{}, {"answers": []}])
def test_squad_takes_only_is_impossible_for_unanswerable(tmp_path, blind):
    questions = [
        {"id": "a", "question": "Who ran?", **blind},
        {"id": "b", "question": "Why?", "is_impossible": True, **blind},
    ]
    path = tmp_path / "dev.json"
    paragraph = {"context": "Tom ran home.", "qas": questions}
    path.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}), "utf-8")
    first, second = SQUAD.read(path, "dev", "en")
    assert (first.example_id, first.reason) == ("a", "no_label")
    assert second.labels == {"answers": (), "answerable": "no"}


def test_translations_share_their_ids(benchmark_files):
    english = by_id(XQUAD, benchmark_files / "xquad", "test", "en")
    german = by_id(XQUAD, benchmark_files / "xquad", "test", "de")
    assert list(english) == list(german) == ["x1", "x2"]
    assert answer_texts(english["x1"]) == ["lighthouse"]
    assert answer_texts(german["x1"]) == ["Leuchtturm"]


def mixed_pairs(folder):
    return [part for part in MLQA.parts(folder) if part.split == "dev_mixed"]


def assert_mixed_file_is_a_join(folder, part):
    """Ids, questions, passages and answers of a mixed file are those of its two languages."""
    _, context, _, question = part.lang.split("-")
    mixed = by_id(MLQA, folder, part.split, part.lang)
    contexts, questions = (by_id(MLQA, folder, "dev", lang) for lang in (context, question))
    assert mixed.keys() == contexts.keys() & questions.keys()
    for name, item in mixed.items():
        assert item.segments == (questions[name].segments[0], contexts[name].segments[1])
        assert item.labels == contexts[name].labels


def test_mixed_languages_of_mlqa_are_the_join_of_two_parts(benchmark_files):
    folder = benchmark_files / "mlqa"
    assert len(MLQA.parts(folder)) == 9
    assert len(mixed_pairs(folder)) == 6
    for part in mixed_pairs(folder):
        assert_mixed_file_is_a_join(folder, part)


def test_a_file_of_all_languages_is_read_for_one(benchmark_files):
    folder = benchmark_files / "tydiqa"
    parts = {(part.split, part.lang) for part in TYDIQA.parts(folder)}
    assert len(parts) == 11
    assert {("train", "te"), ("dev", "en"), ("dev", "fi")} < parts
    assert list(by_id(TYDIQA, folder, "train", "en")) == ["english-17-0", "english-17-1"]
    assert list(by_id(TYDIQA, folder, "train", "fi")) == ["finnish-4-1"]
    with pytest.raises(InputError, match="holds nothing of train in 'te'"):
        list(TYDIQA.read(folder, "train", "te"))


def test_a_language_with_its_own_file_is_not_read_from_the_whole(tmp_path):
    for name in ("tydiqa-goldp-v1.1-train.json", "tydiqa.goldp.en.train.json"):
        (tmp_path / name).touch()
    english = TYDIQA.part(tmp_path, "train", "en")
    assert [path.name for path in english.files] == ["tydiqa.goldp.en.train.json"]
    assert len(TYDIQA.parts(tmp_path)) == 9


@pytest.mark.parametrize(
    ("name", "path", "split", "lang", "questions", "answers"),
    [
        *(
            ("xquad", f"xquad/xquad.{x}.json", "test", x, 1190, 1190)
            for x in ["ar", "de", "en", "es", "zh"]
        ),
        ("tydiqa", "tydiqa/tydiqa.goldp.en.train.json", "train", "en", 3696, 3696),
        ("tydiqa", "tydiqa/tydiqa.goldp.en.dev.json", "dev", "en", 440, 0),
        ("squad", "squad2-sample/squad_sample.json", "dev", "en", 120, 164),
        ("squad", "squad2-sample/allennlp_squad.json", "dev", "en", 5, 7),
        ("squad", "squad2-sample/allennlp_squad2.json", "dev", "en", 6, 7),
    ],
)
def test_every_real_answer_is_at_its_offset(data_dir, name, path, split, lang, questions, answers):
    file = data_dir / "benchmarks" / path
    items = list(BENCHMARKS[name].read(file, split, lang))
    assert len({item.example_id for item in items}) == len(items) == questions
    assert [answer_texts(item) for item in items] == gold_texts(file)
    assert sum(len(item.labels["answers"] or ()) for item in items) == answers
    assert {item.labels["answers"] is None for item in items} == {not answers}
    assert not any(item.repairs for item in items)


@pytest.mark.slow
def test_every_real_file_of_mlqa_that_mixes_languages_is_a_join(data_dir):
    folder = data_dir / "benchmarks/mlqa"
    sizes = {lang: len(by_id(MLQA, folder, "dev", lang)) for lang in ("de", "en", "es")}
    assert sizes == {"de": 512, "en": 1148, "es": 500}
    assert len(mixed_pairs(folder)) == 6
    for part in mixed_pairs(folder):
        assert_mixed_file_is_a_join(folder, part)
