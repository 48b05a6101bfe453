"""The code blocks of a page, and what a reader is told that they print."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
RUN = ("bash", "python", "pycon", "sql", "javascript")
SHOWN = ("json", "http", "conllu", "text")
"""Languages that are run, and those in which a block prints."""

_PART = re.compile(
    r"^<!-- (?P<kind>not run|setup)(?:: (?P<reason>.+?))?\s*(?:\n(?P<hidden>.*?))?-->$"
    r"|^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block, or the commands of a ``<!-- setup`` comment.

    `reason` says why it is not run; `printed` is the block that directly follows it, if that
    shows what this one prints.
    """

    line: int
    language: str
    code: str
    reason: str | None = None
    printed: str | None = None


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order.

    A comment ``<!-- not run: REASON -->`` right before a block is its reason. A block of one of
    `SHOWN` right behind another block is what that one prints.
    """
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    reason, end = None, 0
    for part in _PART.finditer(text):
        adjacent = not text[end : part.start()].strip()
        line, end = text.count("\n", 0, part.start()) + 1, part.end()
        if part["kind"] == "not run":
            reason = part["reason"]
            continue
        if part["kind"] == "setup":
            found.append(Block(line, "bash", part["hidden"]))
            continue
        given, reason = (reason if adjacent else None), None
        code = re.sub(rf"^{part['indent']}", "", part["code"], flags=re.MULTILINE)
        last = found[-1] if found else None
        shows = adjacent and part["language"] in SHOWN and last and last.language in RUN
        if shows and last and given is None and last.printed is None:
            found[-1] = Block(last.line, last.language, last.code, last.reason, code)
        else:
            found.append(Block(line, part["language"], code, given))
    return found


def check_printed(printed: str, found: str) -> None:
    """Compare what a page shows with what came; ``...`` stands for what is left out."""
    try:
        shown = [json.loads(printed)] if printed.startswith(("{", "[")) else []
    except ValueError:
        shown = []
    if shown:
        whole = json.loads(found)
        parts = [whole]
        for name in ("items", "examples"):
            parts += whole[name] if isinstance(whole.get(name), list) else []
        assert any(is_printed(shown[0], part) for part in parts), found
    elif printed.startswith("{"):  # lines come as texts finish
        lines = [sorted(map(json.loads, text.strip().split("\n")), key=_place)
                 for text in (printed, found)]  # fmt: skip
        assert is_printed(*lines), found
    else:
        pattern = re.escape(printed.strip()).replace(r"\.\.\.", ".*")
        assert re.fullmatch(pattern, found.strip(), re.DOTALL), found


def _place(line: dict[str, Any]) -> tuple[bool, int]:
    return "done" in line, line.get("index", -1)


def is_printed(printed: Any, found: Any) -> bool:
    """Whether an answer is as printed, where ``...`` stands for what is left out."""
    if printed == "...":
        return True
    if isinstance(printed, str):
        pattern = re.escape(printed).replace(re.escape("..."), ".*")
        return isinstance(found, str) and re.fullmatch(pattern, found, re.DOTALL) is not None
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
