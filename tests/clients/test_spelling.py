"""Messages name arguments as Python does, and the command line as its options."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

from clients.cli import build_app
from clients.spelling import speak_for, spelled

PACKAGES = ("syntax", "featurestore", "service", "clients", "trainer")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("command", "message", "expected"),
    [
        ("store export out", "choose with `tokenizer=`: a, b", "choose with --tokenizer: a, b"),
        ("store export out", "as `parser=en:a/b,fr:c/d`", "as --parser en:a/b,fr:c/d"),
        ("store noise", "give `split=dev`", "give --split dev"),
        ("store vacuum", "`older_than_hours=inf` is too much", "--older-than inf is too much"),
        ("store word-order", "lower `min_count=`", "lower --min-count"),
        ("evaluate run", "(`any_parser=True`)", "(--any-parser)"),
        ("train xnli", "choose `parser=a/b`", "choose --set parser=a/b"),
        ("train xnli", "choose with `tokenizer=`", "choose with --set tokenizer=..."),
        ("train xnli", "give `joint_root=False`", "give --set joint_root=false"),
        ("backfill xnli", "ask for `long_sentences=split`", "ask for --split-long"),
        ("parse x", "body.matrices.0: Input should be", "--matrices: Input should be"),
        ("store sql", "give `split=dev`", "give `split=dev`"),  # it has no such option
    ],
)
def test_a_command_names_its_own_options(command, message, expected) -> None:
    name, *rest = command.split()
    speak_for(get_command(build_app()).commands[name], rest)
    assert spelled(message) == expected


def raised(path: Path) -> list[str]:
    """What errors say, values left out."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    calls = [node.exc for node in nodes if isinstance(node, ast.Raise)]
    messages = [call.args[0] for call in calls if isinstance(call, ast.Call) and call.args]
    return [
        "".join(part.value if isinstance(part, ast.Constant) else "..." for part in message.values)
        for message in messages
        if isinstance(message, ast.JoinedStr)
    ] + [
        message.value
        for message in messages
        if isinstance(message, ast.Constant) and isinstance(message.value, str)
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_messages_mark_the_arguments_that_they_name(package) -> None:
    """So that the command line can show an option instead; options of recipes have a dot."""
    unmarked = [
        f"{path.relative_to(ROOT)}: {message}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for message in raised(path)
        if re.search(r"(?<![\w.`])[a-z_]+=", message)
    ]
    assert unmarked == []
