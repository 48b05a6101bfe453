"""The requests of the HTTP guides get the answers that are printed below them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_EXCHANGE = re.compile(r"```bash\n(curl [^`]*?)```\n+```(?:json)?\n(.*?)```", re.DOTALL)
EXCHANGES = [
    pytest.param(command, answer, id=f"{page}-{number}")
    for page in ("api", "features")
    for number, (command, answer) in enumerate(
        _EXCHANGE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    )
]


def test_there_are_exchanges_in_both_guides() -> None:
    assert len(EXCHANGES) >= 5


@pytest.mark.parametrize(("command", "answer"), EXCHANGES)
async def test_the_service_answers_as_printed(serve, command: str, answer: str) -> None:
    words = shlex.split(command)
    (url,) = (word for word in words if word.startswith("http://"))
    body = words[words.index("-d") + 1]
    async with serve() as client:
        found = await client.post(
            url.removeprefix("http://127.0.0.1:8000"),
            content=body,
            headers={"Content-Type": "application/json"},
        )
    assert found.status_code == 200
    if "format=conllu" in url:
        lines = found.text.rstrip("\n").split("\n")
        assert all(map(is_printed, answer.rstrip("\n").split("\n"), lines)), found.text
    elif "format=ndjson" in url:  # lines come as texts finish
        printed = sorted(map(json.loads, answer.strip().split("\n")), key=place)
        lines = sorted(map(json.loads, found.text.strip().split("\n")), key=place)
        assert is_printed(printed, lines), lines
    else:
        whole = found.json()
        printed = json.loads(answer)
        parts = [whole, *whole.get("items", ())]
        assert any(is_printed(printed, part) for part in parts), whole


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_uploads_of_the_guides_say_what_they_are(page: str) -> None:
    blocks = re.findall(r"```bash\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    commands = [part for block in blocks for part in block.replace("\\\n", " ").split("\n")]
    bodies = [line for line in commands if "--data-binary" in line and "/api/" not in line]
    assert [line for line in bodies if "Content-Type" not in line] == []


def place(line: dict[str, Any]) -> tuple[bool, int]:
    return "done" in line, line.get("index", -1)


def is_printed(printed: Any, found: Any) -> bool:
    """Whether an answer is as printed, where ``...`` stands for what is left out."""
    if printed == "...":
        return True
    if isinstance(printed, str):
        pattern = re.escape(printed).replace(re.escape("..."), ".*")
        return isinstance(found, str) and re.fullmatch(pattern, found) is not None
    if isinstance(printed, list):
        left_out = printed[-1:] == ["..."]
        shown = printed[:-1] if left_out else printed
        enough = len(found) >= len(shown) if left_out else len(found) == len(shown)
        return enough and all(map(is_printed, shown, found))
    if isinstance(printed, dict):
        shown = {name: value for name, value in printed.items() if name != "..."}
        names = shown.keys() <= found.keys() if "..." in printed else shown.keys() == found.keys()
        return names and all(is_printed(value, found[name]) for name, value in shown.items())
    return bool(printed == found)
