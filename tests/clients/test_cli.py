"""The command line as a whole, and those commands that need no service."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from clients.benchmarks import BENCHMARKS
from clients.cli import build_app, missing_extra, readable, trace
from clients.commands import register
from syntax.errors import UnknownNameError
from syntax.extras import install_command

SNAPSHOT = Path(__file__).with_name("snapshots") / "commands.json"


def described(command) -> dict:
    """What a user sees of a command: its help, and every parameter with its help."""
    children = getattr(command, "commands", {})
    return {
        "help": " ".join((command.help or "").split()),
        "parameters": {
            " ".join(param.opts): param.help for param in command.params if param.name != "help"
        },
        **({"commands": {n: described(c) for n, c in children.items()}} if children else {}),
    }


def test_every_command_and_parameter_has_help_as_recorded():
    own = typer.Typer()
    register(own)
    now = described(get_command(own))["commands"]
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(json.dumps(now, indent=2) + "\n", "utf-8")
    recorded = SNAPSHOT.read_text("utf-8")
    assert now == json.loads(recorded)
    assert ': ""' not in recorded
    assert ": null" not in recorded


def test_help_lists_the_commands(invoke):
    result = invoke("--help", env={"COLUMNS": "120"})
    assert result.exit_code == 0
    for name in ("demo", "parse", "backfill", "jobs", "benchmarks"):
        assert name in result.output


def test_a_command_is_the_same_without_the_others():
    whole = get_command(build_app()).commands
    for name, command in whole.items():
        found = get_command(build_app(["--debug", name, "--help"])).commands
        assert described(found[name]) == described(command)
        called = {"export-parser", "train-parser"} if name == "models" else set()
        assert found.keys() == {name, *called}
    assert get_command(build_app(["--help"])).commands.keys() == whole.keys()
    assert get_command(build_app(["prase"])).commands.keys() == whole.keys()


def test_version_option_prints_the_version(invoke):
    assert invoke("--version").output == f"parsebank {version('parsebank')}\n"


HEAVY = ("torch", "transformers", "pyarrow", "duckdb", "fastapi", "httpx", "numba", "rich")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from clients.cli import build_app;"
        "build_app()(['--help'], standalone_mode=False);"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_usage_errors_exit_with_2(invoke):
    assert invoke("backfill", "xnli", "--split", "dev").exit_code == 2
    assert invoke("no-such-command").exit_code == 2
    both = invoke("parse", "Hello.", "--url", "http://127.0.0.1:9", "--store", "x")
    assert both.exit_code == 2
    assert "--url or --store, not both" in both.output


def test_named_errors_exit_with_1_and_one_message(invoke):
    result = invoke("benchmarks", "describe", "xnly")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: unknown benchmark 'xnly'. Did you mean 'xnli'?")
    assert "Traceback" not in result.output


def test_debug_shows_the_trace(invoke):
    result = invoke("--debug", "benchmarks", "describe", "xnly")
    assert isinstance(result.exception, UnknownNameError)


def test_a_trace_shows_no_password():
    try:
        raise OSError("HEAD http://ada:secret@store:9000/bucket")
    except OSError as error:
        shown = trace(error)
    assert shown.endswith("OSError: HEAD http://ada:***@store:9000/bucket")
    assert "secret" not in shown


def test_a_missing_module_of_an_extra_and_no_other_error_is_answered_with_the_pip_line():
    assert missing_extra("torch.nn") == (
        f"torch is not installed; run `{install_command('train')}`"
    )
    assert "[stanza]" in readable(ModuleNotFoundError(name="stanza"))
    assert missing_extra("tomllib") is None
    assert readable(ModuleNotFoundError(name="something_else")) is None
    assert readable(ZeroDivisionError()) is None


def test_file_errors_name_the_file(tmp_path):
    with pytest.raises(OSError) as caught:
        (tmp_path / "missing").read_text()
    assert readable(caught.value) == f"{tmp_path}/missing: No such file or directory"


def test_full_disk_and_deep_nesting_print_no_trace():
    full = os.strerror(errno.ENOSPC)
    assert readable(OSError(errno.ENOSPC, full)) == full
    assert readable(ConnectionRefusedError(errno.ECONNREFUSED, "refused")) is None
    with pytest.raises(RecursionError) as caught:
        json.loads("[" * 100_000)
    assert readable(caught.value) == "what was read is nested too deeply"


def test_broken_pipe_on_output_is_no_error(tmp_path):
    lines = tmp_path / "many.txt"
    lines.write_text("\n" * 20_000, "utf-8")
    shell = (
        f"{sys.executable} -m clients.cli benchmarks check text --path {lines} "
        "--split train --lang en 2>&1 | head -1"
    )
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr


def test_a_command_that_queries_ends_without_words_of_its_libraries(tmp_path):
    command = [sys.executable, "-m", "clients.cli", "store", "sql", "select 1"]
    done = subprocess.run(
        [*command, "--store", tmp_path / "none"], capture_output=True, text=True, check=False
    )
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("Error: there is no store at ")


def test_unreachable_service_is_reported(invoke):
    result = invoke("jobs", "list", "--url", "http://127.0.0.1:9")
    assert result.exit_code == 1
    assert "start one with `parsebank serve`" in result.stderr


def test_benchmarks_list_shows_every_reader(invoke):
    output = invoke("benchmarks", "list", env={"COLUMNS": "80"}).output
    assert [line.split("\t")[0] for line in output.splitlines()[1:]] == list(BENCHMARKS)
    listed = json.loads(invoke("benchmarks", "list", "--json").output)
    assert {one["name"]: one["fields"] for one in listed}["xnli"] == ["premise", "hypothesis"]


def test_benchmarks_describe_shows_statement_and_parts(invoke, benchmark_files):
    output = invoke("benchmarks", "describe", "xnli", "--path", benchmark_files / "pairs").output
    assert "label\tlabel (class): entailment, neutral, contradiction" in output
    assert "found\tdev de (dev-de.tsv)" in output


def test_benchmarks_describe_finds_the_names_that_only_files_know(invoke, benchmark_files):
    output = invoke("benchmarks", "describe", "atis", "--path", benchmark_files / "atis").output
    assert "label\tintent (class): as the files have them" in output
    assert "found\tintent (class): flight, flight#time, meal" in output
    assert "rejects\tno_label: an utterance without intent" in output


def test_benchmarks_describe_names_the_first_files_of_a_part_and_counts_the_others(
    invoke, tmp_path
):
    folder = tmp_path / "dev" / "high"
    folder.mkdir(parents=True)
    for number in range(9):
        (folder / f"{number}.txt").write_text("{}", "utf-8")
    output = invoke("benchmarks", "describe", "race", "--path", tmp_path).output
    assert "found\tdev en (0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 4 more)" in output


def test_benchmarks_check_recognises_a_path_and_counts_all_its_parts(invoke, benchmark_files):
    by_place = invoke("benchmarks", "check", benchmark_files / "wikiann")
    by_path = invoke("benchmarks", "check", "--path", benchmark_files / "wikiann")
    assert by_place.exit_code == by_path.exit_code == 0
    assert by_place.output == by_path.output
    counts = (("examples", 2), ("ner_tags O", 1), ("ner_tags B-LOC", 1))
    lines = [f"wikiann\tdev\tde\t{what}\t{count}\n" for what, count in counts]
    assert "".join(lines) in by_place.output
    assert "\nwikiann\ttest\txx\texamples\t" in by_place.output


def test_benchmarks_check_takes_a_language_of_all_splits(invoke, benchmark_files):
    place = ("--path", benchmark_files / "conll", "--lang", "en")
    output = invoke("benchmarks", "check", "conll", *place).output
    parts = dict.fromkeys(tuple(line.split("\t")[:3]) for line in output.splitlines()[1:])
    assert list(parts) == [("conll", "dev", "en"), ("conll", "test", "en")]


def test_benchmarks_check_counts_ids_that_come_again(invoke, tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text(
        "id\tsentence1\tsentence2\tlabel\n1\tA\tB\t0\n1\tC\tD\t1\n2\tE\tF\t1\n", "utf-8"
    )
    output = invoke("benchmarks", "check", "pawsx", "--path", path).output
    assert "\trepeated ids\t1\n" in output


def test_benchmarks_check_needs_a_name_or_a_path(invoke, tmp_path):
    assert "needs the name of a benchmark" in invoke("benchmarks", "check").stderr
    assert "no file or folder" in invoke("benchmarks", "check", tmp_path / "nope").stderr
    assert "unknown benchmark 'xnly'" in invoke("benchmarks", "check", "xnly").stderr
    assert "no reader fits" in invoke("benchmarks", "check", tmp_path).stderr


def test_benchmarks_check_names_an_empty_file_and_reads_the_others(invoke, tmp_path):
    for lang, text in (("de", ""), ("en", "A.\tB.\tneutral\n")):
        (tmp_path / f"dev-{lang}.tsv").write_text(text, "utf-8")
    result = invoke("benchmarks", "check", "xnli", "--path", tmp_path)
    assert result.exit_code == 1
    assert "dev-de.tsv holds nothing of dev in 'de'; name the files that do" in result.stderr
    assert "xnli\tdev\ten\tlabel neutral\t1\n" in result.stdout


def test_benchmarks_check_counts_and_fails_on_rejections(invoke, benchmark_files):
    place = ("--path", benchmark_files / "pairs", "--split", "dev")
    good = invoke("benchmarks", "check", "xnli", *place, "--lang", "en")
    assert good.exit_code == 0
    assert "\texamples\t3\n" in good.output
    bad = invoke("benchmarks", "check", "xnli", *place, "--lang", "de")
    assert bad.exit_code == 1
    assert "\trejected: example\t1\n" in bad.stdout
    assert bad.stderr.startswith("dev-2: example: dev-de.tsv, line 2 has 2 fields")
