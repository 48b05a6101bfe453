"""``parsebank backfill`` over several parts and tokenizers, as a dry run, and over tables."""

from __future__ import annotations

import contextlib
import json
import shutil
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import httpx
import pytest

from clients.benchmarks import SAMPLE
from clients.processes import free_port, running, wait_until
from clients.processes import parsebank as command
from featurestore import open_store
from service.parsers import find_parser
from service.parsers.records import ModelRecord, RecordedFile, write_records
from service.settings import Settings
from service.tokenizers import bundled_tokenizers


@pytest.fixture
def other_tokenizer(tmp_path) -> Path:
    """A tokenizer that keeps capitals."""
    (bundled,) = bundled_tokenizers().values()
    folder = tmp_path / "cased"
    folder.mkdir()
    content = json.loads((bundled / "tokenizer.json").read_text("utf-8"))
    content["normalizer"] = None
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    config = (bundled / "tokenizer_config.json").read_text("utf-8")
    (folder / "tokenizer_config.json").write_text(config, "utf-8")
    return folder


def account(output: str) -> dict[str, str]:
    """The figures of a printed account."""
    return dict(line.split("\t") for line in output.splitlines() if line.count("\t") == 1)


@pytest.mark.slow
def test_several_parts_and_tokenizers_are_one_command_with_one_account(
    parsebank, tmp_path, other_tokenizer
):
    report = tmp_path / "report.json"
    place = ("backfill", "sample", "--split", "all", "--lang", "all", "--name", "several")
    options = ("--tokenizer", "parsebank-wordpiece-en", "--tokenizer", other_tokenizer)
    result = parsebank(*place, *options, "--limit", 8, "--report", report)
    assert result.exit_code == 0, result.output
    jobs = json.loads(report.read_text("utf-8"))["jobs"]
    parts = {(part.split, part.lang) for part in SAMPLE.parts()}
    assert [(job["split"], job["lang"]) for job in jobs[::2]] == sorted(parts)
    assert {Path(job["tokenizer"]).name for job in jobs[1::2]} == {other_tokenizer.name}
    for first, second in zip(jobs[::2], jobs[1::2], strict=True):
        assert first["counts"]["stored"] == second["counts"]["stored"]
        assert second["counts"]["parses_done"] == 0
    total = sum(job["counts"]["stored"] for job in jobs)
    last = result.stdout.splitlines()[-1].split("\t")
    assert (last[0], str(total) in last) == ("all", True)


@pytest.mark.slow
def test_unreadable_part_does_not_stop_the_others(parsebank, tmp_path):
    report = tmp_path / "report.json"
    place = ("backfill", "sample", "--lang", "en", "--name", "parts", "--limit", 3)
    result = parsebank(*place, "--split", "dev, nosuch", "--split", "dev", "--report", report)
    assert result.exit_code == 1
    written = json.loads(report.read_text("utf-8"))
    assert [job["state"] for job in written["jobs"]] == ["done"]
    (failure,) = written["failures"]
    assert (failure["split"], failure["error_type"]) == ("nosuch", "unknown_name")
    assert "1 of 2 were not sent:\n  nosuch en: unknown_name: " in result.stderr


@pytest.fixture
def damaged_model(tmp_path, monkeypatch) -> str:
    """A French model whose file is not the recorded one; gives the error."""
    path = tmp_path / "models" / "french-gsd.udpipe"
    path.parent.mkdir()
    shutil.copyfile(find_parser(Settings(), "udpipe/english-ewt").path, path)
    name, files = f"udpipe/{path.stem}", (RecordedFile(path.name),)
    record = ModelRecord(name, "udpipe.v1", files, language="fr", sha256="0" * 64)
    write_records(path.parent, {name: record})
    monkeypatch.setenv("PARSEBANK_MODELS_DIR", str(path.parent))
    return "model_load"


@pytest.fixture
def missing_library(tmp_path, monkeypatch) -> str:
    """A French pipeline of spaCy, which is not installed; gives the error."""
    folder = tmp_path / "models" / "spacy" / "fr"
    folder.mkdir(parents=True)
    (folder / "config.cfg").touch()
    meta = {"lang": "fr", "labels": {"parser": ["nsubj", "ROOT"]}}
    (folder / "meta.json").write_text(json.dumps(meta), "utf-8")
    monkeypatch.setenv("PARSEBANK_MODELS_DIR", str(tmp_path / "models"))

    def not_installed(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("service.parsers.spacy.folder.version", not_installed)
    return "missing_extra"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["damaged_model", "missing_library"])
def test_a_parser_that_cannot_run_does_not_stop_the_others(parsebank, tmp_path, request, fault):
    error_type, report = request.getfixturevalue(fault), tmp_path / "report.json"
    for lang in ("en", "fr"):
        (tmp_path / f"dev-{lang}.tsv").write_text(
            "The nurse sleeps.\tNobody sleeps.\tcontradiction\n"
        )
    place = ("backfill", "sample", "--path", tmp_path, "--split", "dev", "--name", fault)
    result = parsebank(*place, "--lang", "fr,en", "--report", report)
    assert result.exit_code == 1
    written = json.loads(report.read_text("utf-8"))
    (failure,) = written["failures"]
    assert (failure["lang"], failure["error_type"]) == ("fr", error_type)
    (job,) = written["jobs"]
    assert (job["lang"], job["state"], job["counts"]["stored"]) == ("en", "done", 1)


@pytest.mark.slow
def test_a_dry_run_shows_what_would_be_done_and_stores_nothing(parsebank, tmp_path):
    report = tmp_path / "report.json"
    place = ("backfill", "sample", "--split", "dev", "--lang", "en", "--name", "dry")
    result = parsebank(*place, "--limit", 60, "--dry-run", "--report", report)
    assert result.exit_code == 0, result.output
    (forecast,) = json.loads(report.read_text("utf-8"))["forecasts"]
    assert (forecast["examples"], forecast["to_store"]) == (60, 59)
    assert forecast["dropped"] == {"empty_text": 1}
    figures = account(result.stdout)
    assert figures["dropped: empty_text"] == "1"
    assert figures["new parses"] == f"{forecast['distinct_texts'] - forecast['already_parsed']}"
    assert "dry" not in parsebank("store", "datasets").stdout
    assert parsebank(*place, "--limit", 60, "--dry-run", "--strict").exit_code == 1


@pytest.mark.slow
def test_a_table_takes_its_columns_from_the_command(parsebank, tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("key\tone\ttwo\tgold\na7\tTime flies.\tIt does.\tyes\n", "utf-8")
    place = ("backfill", "table", "--path", path, "--split", "train", "--lang", "en")
    columns = ("--columns", "premise=one", "--columns", "hypothesis=two", "--id", "key")
    result = parsebank(*place, *columns, "--label", "label:class=gold", "--name", "columns")
    assert result.exit_code == 0, result.output
    query = "select example_id, texts, label from examples where dataset = 'columns'"
    found = json.loads(parsebank("store", "sql", query, "--json").stdout)
    assert found == [{"example_id": "a7", "texts": ["Time flies.", "It does."], "label": "yes"}]
    refused = parsebank("backfill", "sample", "--split", "dev", "--lang", "en", "--id", "x")
    assert refused.exit_code == 1
    assert "are for the reader `table`" in refused.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("dev.tsv", "one\ttwo\nTime flies.\tIt does.\n"),
        ("dev.csv", "one,two\nTime flies.,It does.\n"),
        ("dev.jsonl", '{"one": "Time flies."}\n{"two": "It does."}\n'),
    ],
)
def test_a_column_that_a_table_lacks_is_refused_with_those_it_has(
    parsebank, tmp_path, name, content
):
    path = tmp_path / name
    path.write_text(content, "utf-8")
    place = ("backfill", "table", "--path", path, "--split", "dev", "--lang", "en")
    for options, missing in (((), "text"), (("--columns", "one", "--id", "key"), "key")):
        refused = parsebank(*place, *options)
        assert refused.exit_code == 1
        told = f"{path} has no column {missing!r}; its columns are one, two: say which hold the"
        assert told in refused.stderr
        assert "--columns A,B" in refused.stderr


def test_a_file_that_names_no_language_is_not_parsed_in_several(parsebank, tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("en\tfr\nTime flies.\tLe temps file.\n", "utf-8")
    place = ("backfill", "table", "--path", path, "--split", "dev", "--lang", "en,fr")
    refused = parsebank(*place, "--columns", "premise=en", "--columns", "hypothesis=fr")
    assert refused.exit_code == 1
    assert "each of its texts would be taken for en and for fr; name one" in refused.stderr
    assert "--lang fr" in refused.stderr


@pytest.mark.slow
def test_the_first_message_of_a_drop_is_told(parsebank, tmp_path):
    path, report = tmp_path / "dev.tsv", tmp_path / "report.json"
    path.write_text("text\tgold\nTime flies.\tyes\nAnn left.\n", "utf-8")
    place = ("--path", path, "--split", "dev", "--lang", "en", "--name", "told")
    result = parsebank("backfill", "table", *place, "--dry-run", "--report", report)
    assert "told dev en: dropped: example, first: dev.tsv, line 3 has 1 field" in result.stderr
    rejected = json.loads(report.read_text("utf-8"))["rejected"]
    assert list(rejected["told dev en"]) == ["example"]


@pytest.mark.slow
def test_a_report_gets_its_folder_before_anything_is_sent(parsebank, tmp_path):
    place = ("backfill", "sample", "--split", "dev", "--lang", "en", "--name", "reported")
    good = tmp_path / "new" / "folder" / "report.json"
    assert parsebank(*place, "--limit", 2, "--report", good).exit_code == 0
    assert json.loads(good.read_text("utf-8"))["jobs"]
    for bad in (good / "report.json", tmp_path):
        refused = parsebank(*place, "--limit", 3, "--report", bad)
        assert refused.exit_code == 1
        assert f"the report {bad}" in refused.stderr
    query = "select count(*) as n from examples where dataset = 'reported'"
    assert json.loads(parsebank("store", "sql", query, "--json").stdout) == [{"n": 2}]


@pytest.fixture
def other_parser(tmp_path, monkeypatch) -> None:
    """The bundled model under another name as well, which makes another parser of it."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "english-other.udpipe").symlink_to(find_parser(Settings(), "udpipe/english-ewt").path)
    monkeypatch.setenv("PARSEBANK_MODELS_DIR", str(folder))


@pytest.mark.slow
def test_warning_about_another_parser_comes_before_sending(parsebank, tmp_path, other_parser):
    place = ("backfill", "sample", "--lang", "en", "--name", "warned", "--limit", 2)
    assert parsebank(*place, "--split", "dev", "--parser", "en:udpipe/english-ewt").exit_code == 0
    report = tmp_path / "report.json"
    other = (*place, "--split", "dev,train", "--parser", "udpipe/english-other")
    result = parsebank(*other, "--dry-run", "--report", report)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("Warning: the en of dataset 'warned' was parsed by udpipe/engl") == 1
    assert "to go on as before, give --parser en:udpipe/english-ewt" in result.stderr
    forecasts = json.loads(report.read_text("utf-8"))["forecasts"]
    assert [len(forecast["warnings"]) for forecast in forecasts] == [1, 1]


def test_a_parser_for_a_language_that_is_not_read_is_refused(parsebank):
    place = ("backfill", "sample", "--split", "dev", "--lang", "en")
    result = parsebank(*place, "--parser", "fr:udpipe/french-gsd")
    assert result.exit_code == 1
    assert "is chosen for 'fr', which is not read here; the languages are en" in result.stderr


def test_an_empty_file_is_named(parsebank, tmp_path):
    path = tmp_path / "dev-en.tsv"
    path.touch()
    result = parsebank("backfill", "xnli", "--path", path, "--split", "dev", "--lang", "en")
    assert result.exit_code == 1
    assert f"{path} holds nothing of dev in 'en'" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("dry_run", [True, False])
def test_part_without_usable_examples_is_named(parsebank, tmp_path, dry_run):
    path = tmp_path / "dev.txt"
    path.write_text("\n \n", "utf-8")
    options = ("--split", "dev", "--lang", "en", *(["--dry-run"] if dry_run else []))
    result = parsebank("backfill", "text", "--path", path, *options)
    assert result.exit_code == 1
    assert "text dev en: no example can be used, all are dropped" in result.stderr


@pytest.mark.slow
def test_examples_without_label_are_counted(parsebank, tmp_path):
    path, report = tmp_path / "test-en.tsv", tmp_path / "report.json"
    path.write_text("Time flies.\tIt does.\nAnn left.\tShe did.\n", "utf-8")
    place = ("--path", path, "--split", "test", "--lang", "en", "--name", "blind")
    result = parsebank("backfill", "xnli", *place, "--dry-run", "--report", report)
    assert result.exit_code == 0, result.output
    assert "blind test en: 2 examples without label" in result.stderr
    assert json.loads(report.read_text("utf-8"))["unlabelled"] == {"blind test en": 2}


def test_all_is_refused_if_files_do_not_tell_their_split(parsebank, tmp_path):
    path = tmp_path / "some.txt"
    path.write_text("Time flies.\n", "utf-8")
    result = parsebank("backfill", "text", "--path", path, "--split", "all", "--lang", "en")
    assert result.exit_code == 1
    assert "do not say which split" in result.stderr


@pytest.mark.slow
def test_backfill_continues_after_a_restart_of_the_service(tmp_path, monkeypatch):
    monkeypatch.setenv("PARSEBANK_JOB_WORKERS", "1")
    monkeypatch.setenv("PARSEBANK_JOB_SHARD_SEGMENTS", "20")
    port, log = free_port(), tmp_path / "log"
    url = f"http://127.0.0.1:{port}"
    serve = command("serve", "--store", str(tmp_path / "store"), "--port", str(port))

    def answers() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{url}/health/live").status_code == 200
        return False

    def has_a_job() -> bool:
        return bool(httpx.get(f"{url}/jobs").json())

    parts = ("--split", "train,dev", "--lang", "en")
    backfill = command("backfill", "sample", *parts, "--name", "restarted", "--url", url)
    with contextlib.ExitStack() as stack:
        with running(serve, log) as service:
            wait_until(answers, service, log, 120)
            client = stack.enter_context(running(backfill, tmp_path / "backfill.log"))
            wait_until(has_a_job, client, tmp_path / "backfill.log", 120)
            service.kill()
        said = tmp_path / "backfill.log"
        wait_until(lambda: "to come back" in said.read_text(), client, said, 120)
        with running(serve, log) as service:
            wait_until(answers, service, log, 120)
            assert client.wait(120) == 0, said.read_text()
    with open_store(str(tmp_path / "store")) as store:
        query = "select split, count(*), count(distinct example_id) from examples group by 1"
        splits = sorted(store.sql(query).fetchall())
    assert [(split, rows == distinct) for split, rows, distinct in splits] == [
        ("dev", True),
        ("train", True),
    ]


def test_a_shard_without_examples_is_done(parsebank, tmp_path):
    report = tmp_path / "report.json"
    place = ("backfill", "sample", "--split", "dev", "--lang", "en", "--shard", "7/1000")
    result = parsebank(*place, "--report", report)
    assert result.exit_code == 0, result.output
    figures = account(result.stdout)
    assert (figures["state"], figures["examples"], figures["stored"]) == ("done", "0", "0")
    (job,) = json.loads(report.read_text("utf-8"))["jobs"]
    assert (job["state"], job["counts"]["examples"]) == ("done", 0)


def test_a_shard_needs_a_store(invoke, parsebank):
    arguments = ("backfill", "sample", "--split", "dev", "--lang", "en", "--shard")
    result = parsebank(*arguments, "3/2")
    assert (result.exit_code, "expected K/N" in result.output) == (1, True)
    result = invoke(*arguments, "1/2", "--url", "http://127.0.0.1:9")
    assert (result.exit_code, "--shard runs without a service" in result.stderr) == (2, True)
