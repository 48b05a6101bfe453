"""Rows on a terminal, in a pipe, and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from syntax.commands.tables import Size, cell, print_record, print_rows, print_table

MODEL = "../models/google-bert/bert-base-multilingual-cased-with-a-long-name"
ROWS = [{"tokenizer": MODEL, "labels": (), "size": Size(305_867), "share": 0.1}]


@pytest.fixture
def shown(monkeypatch, capsys) -> Callable[[], str]:
    """What a terminal of 60 columns shows, without its styles."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    return lambda: re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)


def test_a_pipe_gets_tab_separated_values(capsys) -> None:
    print_rows(ROWS)
    assert capsys.readouterr().out == f"tokenizer\tlabels\tsize\tshare\n{MODEL}\t\t305867\t0.1\n"


def test_a_row_is_a_line_whatever_is_in_it(capsys) -> None:
    print_table(("text", "matrix"), [("a\tb\\\r\nc", [[0, None], [1, 0]])])
    assert capsys.readouterr().out == "text\tmatrix\na\\tb\\\\\\r\\nc\t[[0, null], [1, 0]]\n"


def test_markdown_aligns_numbers_and_escapes_bars(capsys) -> None:
    print_table(("a|b", "n"), [("x\ny", 1), (None, 0.5)], form="markdown")
    assert capsys.readouterr().out == "| a\\|b | n |\n|---|---:|\n| x\\ny | 1 |\n|  | 0.5 |\n"


def test_csv_quotes_commas_and_line_breaks(capsys) -> None:
    print_rows([{"text": 'a,"b"\nc', "n": None}], form="csv")
    assert capsys.readouterr().out == 'text,n\n"a,""b""\nc",\n'


def test_the_form_json_is_the_option_json(capsys) -> None:
    print_rows([{"a": 1}], form="json")
    assert json.loads(capsys.readouterr().out) == [{"a": 1}]


def test_nothing_is_cut_on_a_narrow_terminal(shown) -> None:
    print_rows(ROWS, title="one [/row]")
    text = shown()
    assert max(map(len, text.splitlines())) <= 60
    assert MODEL in "".join(line.split("  ")[0].strip() for line in text.splitlines()[4:])
    assert {"one", "[/row]", "305.9", "kB", "0.1", *ROWS[0]} <= set(text.split())
    assert "…" not in text


def test_a_terminal_too_narrow_for_the_columns_shows_all_of_them(shown) -> None:
    langs = [f"language-{number}" for number in range(12)]
    print_table(langs, [[number / 7 for number in range(12)]])
    numbers = [f"{number / 7:.6g}" for number in range(12)]
    assert [word for word in shown().split() if not word.startswith("─")] == [*langs, *numbers]


def test_one_thing_is_a_line_for_each_fact(shown, capsys, monkeypatch) -> None:
    facts = {"job": "ab12", "examples": 1_234_567, "error": None}
    print_record(facts)
    assert "1,234,567" in shown()
    monkeypatch.delenv("FORCE_COLOR")
    print_record(facts)
    assert capsys.readouterr().out == "job\tab12\nexamples\t1234567\nerror\t\n"
    print_record(facts, as_json=True)
    assert json.loads(capsys.readouterr().out) == facts


def test_json_has_base64_for_bytes_null_for_no_number_and_a_name_once(capsys) -> None:
    print_table(("n", "n"), [([b"\x00\xff"], float("nan"))], as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"n": ["AP8="], "n_1": None}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        ((), ""),
        (("a", 1), "a, 1"),
        ([], "[]"),
        ({"a": [None]}, '{"a": [null]}'),
        (b"\x00\xff", "AP8="),
        (0.25, "0.25"),
        (float("nan"), ""),
        ([float("inf"), 1], "[null, 1]"),
    ],
)
def test_no_cell_is_written_as_python_writes_it(value, text) -> None:
    assert cell(value) == text


def test_no_rows_print_nothing_in_a_pipe(capsys) -> None:
    print_rows([])
    assert capsys.readouterr().out == ""
