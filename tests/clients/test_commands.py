"""The commands that talk to a service, run in this process on a store of their own."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clients.client.jobs import decode_job
from clients.commands.connect import LOADING_SECONDS, connect
from clients.commands.demo import queries
from clients.commands.plan import Outcome
from clients.commands.reports import account_facts, failures
from clients.processes import free_port
from syntax.trees.conllu import parse_conllu

TOKENIZER = "parsebank-wordpiece-en"


def test_parse_shows_a_tree(parsebank):
    result = parsebank("parse", "The nurse called the driver.")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "The nurse called the driver.",
        "└── called  root  VERB",
        "    ├── nurse  nsubj  NOUN",
        "    │   └── The  det  DET",
        "    ├── driver  obj  NOUN",
        "    │   └── the  det  DET",
        "    └── .  punct  PUNCT",
    ]


def test_parse_shows_tables_of_words_pieces_and_distances(parsebank):
    options = ("--format", "table", "--tokenizer", TOKENIZER, "--matrices", "distance,depth")
    result = parsebank("parse", "Bees [b]dance[/b].", *options)
    assert result.exit_code == 0
    assert "\n3\tb\t" in result.stdout
    for heading in ("deprel", "parent", "depth", "distance"):
        assert heading in result.stdout


def test_parse_reads_standard_input_and_writes_conllu(parsebank):
    result = parsebank(
        "parse", "-", "--lines", "--format", "conllu", input="Bees dance.\nDogs bark.\n"
    )
    assert [s.text for s in parse_conllu(result.stdout)] == ["Bees dance.", "Dogs bark."]


def test_parse_writes_the_answer_as_json(parsebank):
    result = parsebank("parse", "Bees dance.", "--format", "json", "--tokenizer", TOKENIZER)
    answer = json.loads(result.stdout)
    assert answer["items"][0]["text"] == "Bees dance."
    assert answer["items"][0]["wordpieces"]["input_ids"]


def test_parse_takes_words_divided_by_spaces(parsebank):
    result = parsebank("parse", "Do n't stop", "--mode", "pretokenized", "--format", "conllu")
    (sentence,) = parse_conllu(result.stdout)
    assert [word.form for word in sentence.words] == ["Do", "n't", "stop"]


def test_parse_names_a_bad_text_and_shows_the_others(parsebank):
    result = parsebank("parse", "-", "--lines", input="The dog barked.\n\n")
    assert result.exit_code == 1
    assert "barked  root  VERB" in result.stdout
    assert "Error: empty_text: " in result.stderr


@pytest.mark.slow
def test_a_text_that_is_the_name_of_a_file_is_parsed_with_a_note(parsebank, tmp_path):
    file = tmp_path / "story.txt"
    file.write_text("Bees dance.")
    result = parsebank("parse", file, "--lang", "en", "--format", "conllu")
    assert result.exit_code == 0, result.output
    assert f"# text = {file}" in result.stdout
    assert f"use - < {file}" in result.stderr
    assert "Note" not in parsebank("parse", "word " * 200, "--lang", "en").stderr


def test_a_command_waits_until_its_model_is_loaded(tmp_path, monkeypatch):
    with connect(None, str(tmp_path / "one")) as client:
        assert client.info()["limits"]["request_deadline_seconds"] == LOADING_SECONDS
    monkeypatch.setenv("PARSEBANK_REQUEST_DEADLINE_SECONDS", "7")
    with connect(None, str(tmp_path / "two")) as client:
        assert client.info()["limits"]["request_deadline_seconds"] == 7


def test_an_unknown_parser_or_dataset_comes_with_a_remedy(parsebank, tmp_path):
    parser = parsebank("parse", "Bees dance.", "--parser", "stanza/fr")
    assert "`parsebank models list --remote`" in parser.stderr
    dataset = parsebank("store", "export", tmp_path / "out", "--dataset", "nowhere")
    assert "`parsebank backfill` makes one" in dataset.stderr, dataset.output


def test_parse_names_standard_input_that_is_not_utf8(parsebank):
    result = parsebank("parse", "-", input=b"caf\xe9")
    assert result.exit_code == 1
    assert result.stderr == "Error: byte 3 of standard input is not UTF-8; convert it first\n"


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--lines",), ("--lines", "--tokens")])
def test_a_text_from_windows_is_parsed_as_any_other(parsebank, options):
    given = ("parse", "-", "--lang", "en", "--format", "conllu", *options)
    plain = parsebank(*given, input=b"Dogs bark.\nCats sleep.\n")
    marked = parsebank(*given, input=b"\xef\xbb\xbfDogs bark.\r\nCats sleep.\r\n")
    assert plain.exit_code == marked.exit_code == 0
    assert marked.stdout.replace("\\r", "") == plain.stdout


def test_a_byte_order_mark_is_no_part_of_a_token(parsebank, tmp_path):
    (tmp_path / "tokens").write_bytes(b"\xef\xbb\xbfDogs\r\nbark\r\n")
    result = parsebank("parse", "--tokens-file", tmp_path / "tokens", "--format", "conllu")
    assert "\n1\tDogs\t" in result.stdout


@pytest.mark.slow
def test_without_a_language_it_is_the_parsers_or_the_services(parsebank, monkeypatch):
    monkeypatch.setenv("PARSEBANK_LANG", "xx")
    assert "'xx'" in parsebank("parse", "Bonjour.").stderr
    named = parsebank("parse", "It works.", "--parser", "english-ewt", "--format", "json")
    assert json.loads(named.stdout)["parser"]["name"] == "udpipe/english-ewt"


@pytest.mark.slow
def test_backfill_shows_the_account_and_a_second_one_parses_nothing(parsebank):
    place = ("backfill", "sample", "--split", "dev", "--lang", "en", "--limit", "60")
    first, again = parsebank(*place), parsebank(*place)
    assert (first.exit_code, again.exit_code) == (0, 0)
    figures = [account(result.stdout) for result in (first, again)]
    assert [(f["stored"], f["already stored"]) for f in figures] == [("59", "0"), ("0", "59")]
    assert figures[0]["dropped: empty_text"] == "1"
    assert figures[1]["parses done"] == "0"
    strict = parsebank(*place, "--strict")
    assert strict.exit_code == 1


@pytest.mark.slow
def test_backfill_takes_another_name_and_mode(parsebank, benchmark_files):
    path = benchmark_files / "ud" / "en_tiny-ud-dev.conllu"
    options = ("--path", path, "--split", "dev", "--lang", "en", "--name", "tiny-raw")
    result = parsebank("backfill", "ud", *options, "--mode", "raw", "--no-matrices")
    assert result.exit_code == 0
    assert account(result.stdout)["dataset"].startswith("tiny-raw dev en")


def test_jobs_are_listed_shown_and_watched(parsebank):
    sent = ("backfill", "sample", "--split", "dev", "--lang", "en", "--limit", "5")
    assert parsebank(*sent).exit_code == 0
    listed = parsebank("jobs", "list", env={"COLUMNS": "80"})
    assert listed.exit_code == 0
    header, *rows = (line.split("\t") for line in listed.stdout.splitlines())
    job = next(row[0] for row in rows if row[header.index("dataset")] == "sample")
    found = json.loads(parsebank("jobs", "list", "--json").stdout)
    assert [one["id"] for one in found] == [row[0] for row in rows]
    shown = parsebank("jobs", "show", job)
    assert account(shown.stdout)["examples"] == "5"
    for command in ("show", "watch", "cancel"):
        done = parsebank("jobs", command, job, "--json")
        assert done.exit_code == 0
        assert json.loads(done.stdout)["counts"]["examples"] == 5
    unknown = parsebank("jobs", "show", "no-such-job")
    assert unknown.exit_code == 1
    assert unknown.stderr.startswith("Error: ")


def test_outcome_exit_code_follows_the_job_states(job_json):
    done, failed, cancelled = (
        Outcome(jobs=[decode_job(job_json | {"state": state})])
        for state in ("done", "failed", "cancelled")
    )
    assert [done.exit_code(), done.exit_code(strict=True)] == [0, 1]
    assert [failed.exit_code(), cancelled.exit_code()] == [1, 1]


def test_an_account_names_every_reason(job_json):
    facts = account_facts(decode_job(job_json), seconds=2.0)
    assert facts["dropped: empty_text"] == 2
    assert facts["time"] == "2.0 s, 25 examples/s"  # 50 of 100 are done


def test_queries_survive_a_shell(monkeypatch, tmp_path):
    (tmp_path / "parsebank").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert queries(Path("/tmp/a b"))[0] == "parsebank store inspect --store '/tmp/a b'"
    monkeypatch.setenv("PATH", "")
    command = shlex.quote(str(Path(sys.executable).with_name("parsebank")))
    assert queries(Path("/tmp/a b"))[0] == f"{command} store inspect --store '/tmp/a b'"


def account(output: str) -> dict[str, str]:
    """The figures of a printed account."""
    return dict(line.split("\t") for line in output.splitlines() if "\t" in line)


def test_parse_reads_tokens_and_labels_from_a_file_and_projects_them(parsebank, tmp_path):
    path = tmp_path / "tokens.tsv"
    path.write_text("I\tO\ncan't\tB-X\nsee\tO\n\nNew York\tB-LOC\nis\tO\nbig\tO\n", "utf-8")
    result = parsebank("parse", "--tokens-file", path, "--mode", "retokenize", "--format", "json")
    first, second = json.loads(result.stdout)["items"]
    assert first["token_words"] == [[0], [1, 2], [3]]
    assert first["word_labels"] == ["O", "B-X", "I-X", "O"]
    assert second["text"] == "New York is big"
    assert second["word_labels"] == ["B-LOC", "I-LOC", "O", "O"]
    assert parsebank("parse", "Yes.", "--tokens-file", path).exit_code == 2
    path.write_text("I\tO\nsee\n", "utf-8")
    result = parsebank("parse", "--tokens-file", path)
    assert result.exit_code == 1
    assert "give all one" in result.stderr


def test_parse_writes_a_line_per_text(parsebank):
    result = parsebank(
        "parse", "-", "--lines", "--format", "ndjson", input="Bees dance.\n\nIt rains."
    )
    assert result.exit_code == 1
    lines = {line["index"]: line for line in map(json.loads, result.stdout.splitlines())}
    assert set(lines) == {0, 1, 2}
    assert lines[1]["error"]["error_type"] == "empty_text"
    assert lines[2]["sentences"][0]["words"][1]["form"] == "rains"
    assert "empty_text" in result.stderr


@pytest.mark.slow
def test_parse_splits_long_sentences_when_asked(parsebank, monkeypatch):
    monkeypatch.setenv("PARSEBANK_MAX_WORDS_PER_SENTENCE", "5")
    text = "one two three four five six seven eight"
    assert "sentence_too_long" in parsebank("parse", text, "--mode", "sentence").stderr
    options = ("--mode", "sentence", "--split-long", "--format", "conllu")
    result = parsebank("parse", text, *options)
    assert [len(sentence.words) for sentence in parse_conllu(result.stdout)] == [5, 3]
    assert result.stdout.count("ContinuedSentence=Yes") == 1


@pytest.mark.slow
def test_jobs_are_listed_by_state_and_dataset_and_not_tried_again_when_done(parsebank):
    done = parsebank("backfill", "sample", "--split", "dev", "--lang", "en", "--limit", 3,
                     "--name", "listed")  # fmt: skip
    assert done.exit_code == 0
    listed = parsebank("jobs", "list", "--dataset", "listed", "--state", "done").stdout
    (job,) = [line.split("\t")[0] for line in listed.splitlines() if "listed" in line]
    assert "listed" not in parsebank("jobs", "list", "--state", "failed").stdout
    assert job not in parsebank("jobs", "list", "--dataset", "listed", "--before", job).stdout
    again = parsebank("jobs", "retry", job)
    assert again.exit_code == 1
    assert f"job {job} is done; only a failed job" in again.stderr


def test_an_account_names_each_failed_shard(job_json):
    shard = {"number": 3, "tries": 5, "error_type": "worker_died", "message": "5 workers died"}
    job_json |= {"state": "failed", "failed_shards": [shard], "error": {**shard, "shard": 3}}
    job = decode_job(job_json)
    assert failures(job) == ["shard 3, tried 5 times: worker_died: 5 workers died"]
    assert failures(replace(job, failed_shards=())) == ["worker_died: 5 workers died"]
    assert failures(replace(job, failed_shards=(), error=None)) == []


def test_jobs_without_a_service_names_the_store(invoke, monkeypatch, tmp_path):
    monkeypatch.setenv("PARSEBANK_URL", f"http://127.0.0.1:{free_port()}")
    away = invoke("jobs", "list")
    assert away.exit_code == 1
    assert "--store (./parsebank-data" in away.stderr
    missing = tmp_path / "no-store"
    for command in (("list",), ("show", "j"), ("watch", "j"), ("cancel", "j"), ("retry", "j")):
        nothing = invoke("jobs", *command, "--store", missing)
        assert nothing.exit_code == 1
        assert f"there is no store {missing}" in nothing.stderr
    assert not missing.exists()


def test_jobs_without_a_place_are_those_of_the_default_store(invoke, store, monkeypatch, tmp_path):
    store.mkdir(exist_ok=True)
    (tmp_path / "parsebank-data").symlink_to(store)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARSEBANK_STORE", raising=False)
    monkeypatch.setattr("clients.client.calls.URL", f"http://127.0.0.1:{free_port()}")
    here = invoke("jobs", "list", "--json")
    named = invoke("jobs", "list", "--json", "--store", store)
    assert here.exit_code == 0, here.output
    assert json.loads(here.stdout) == json.loads(named.stdout)
