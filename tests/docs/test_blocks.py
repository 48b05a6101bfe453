"""Every code block of the pages runs, or says why it does not.

The blocks of a page run in order, in one folder with the store of the quickstart and, where the
page talks to ``127.0.0.1:8000``, a service on that store; a page with a database elsewhere gets a
PostgreSQL and an object store. A block that shows what the one before it prints is compared with
that.
"""

from __future__ import annotations

import doctest
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import DOCS, PAGES, ROOT, RUN, Block, blocks_of, check_printed
from tests.docs.conftest import run_bash

ADDRESS = "127.0.0.1:8000"
DATABASE = "db.example.org"
LONG = (
    *("README.md", "backfill.md", "quickstart.md", "sequences.md", "stream.md", "train.md"),
    *("benchmarks.md", "client.md", "clusters.md", "features.md", "models.md", "operate.md"),
    *("contributor.md", "linguist.md", "moving.md", "operator.md", "other-languages.md"),
    *("page.md", "parse.md", "pretrain.md", "store.md"),
)
"""Pages that backfill, train, or run many commands."""


def _case(page: Path) -> object:
    name = str(page.relative_to(ROOT))
    return pytest.param(page, id=name, marks=pytest.mark.slow if page.name in LONG else ())


def runnable(page: Path) -> list[Block]:
    """The blocks of a page that are to be run."""
    return [one for one in blocks_of(page) if one.language in RUN and one.reason is None]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_block_that_does_not_run_says_why(page: Path) -> None:
    if page.parent == DOCS / "extend":
        pytest.skip("tests/trainer/docs/test_extend.py runs these pages")
    languages = ("json", "http", "sh", "shell", "py", "console", "toml", "js", "r")
    silent = [
        one.line for one in blocks_of(page) if one.language in languages and one.reason is None
    ]
    assert silent == []


@pytest.mark.parametrize(
    "page", [_case(page) for page in PAGES if runnable(page) and page.parent.name != "extend"]
)
def test_the_blocks_of_a_page_run(page: Path, folder: Path, request, capsys) -> None:
    blocks = runnable(page)
    meant: dict[str, str] = {}
    if any(ADDRESS in block.code for block in blocks):
        meant[ADDRESS] = request.getfixturevalue("serve")()
    if any(DATABASE in block.code for block in blocks):
        meant |= request.getfixturevalue("elsewhere")
    names: dict[str, object] = {"__name__": "page"}
    try:
        for block in blocks:
            code = block.code
            for written, real in meant.items():
                code = code.replace(written, real)
            where = f"{page.relative_to(ROOT)}:{block.line}"
            printed = run(Block(block.line, block.language, code), names, folder, where, capsys)
            if block.printed is not None:
                check_printed(block.printed, printed)
    finally:
        for value in reversed(list(names.values())):
            if type(value).__name__ in ("Client", "FeatureStore"):
                value.close()


def run(block: Block, names: dict[str, object], folder: Path, where: str, capsys) -> str:
    """Run one block; what it prints."""
    code, language = block.code, block.language
    if language == "bash":
        return run_bash(code, folder)
    if language == "javascript":
        return run_javascript(code, folder)
    if language == "sql":
        return "".join(query_printed(query, folder) for query in code.split(";") if query.strip())
    capsys.readouterr()
    if language == "pycon":
        test = doctest.DocTestParser().get_doctest(code, names, where, None, None)
        runner = doctest.DocTestRunner()
        runner.run(test, clear_globs=False)
        names.update(test.globs)
        assert runner.summarize(verbose=False).failed == 0, capsys.readouterr().out
    else:
        exec(compile(code, where, "exec"), names)
    return capsys.readouterr().out


def run_javascript(code: str, folder: Path) -> str:
    """Standard output of a module in Node.js."""
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    (folder / "page.mjs").write_text(code, encoding="utf-8")
    return run_bash("node page.mjs", folder)


def query_printed(query: str, folder: Path) -> str:
    """A query's rows as JSON lines."""
    from featurestore import open_store

    with open_store(str(folder / "parsebank-data")) as store:
        rows = store.sql(query).fetchall()
    return "".join(json.dumps(row, default=str) + "\n" for row in rows)


@pytest.mark.slow
def test_two_ranks_read_what_four_left(folder: Path) -> None:
    """The example of the front page: each example once, whichever rank has it."""
    (code,) = [one.code for one in blocks_of(ROOT / "README.md") if "load_state_dict" in one.code]
    taken: Counter[str] = Counter()
    code = code.replace("batches = [next(rank) for rank in ranks]", "taken.update(read(ranks))")
    assert "taken" in code
    names: dict[str, Any] = {"taken": taken, "read": read_once}
    exec(compile(code, "README.md", "exec"), names)
    assert sum(taken.values()) == 2 * 4 * 4
    for stream in names["ranks"]:
        for batch in stream:
            taken.update(batch["example_id"])
    whole = names["data"].stream(batch_size=32, seed=0, epoch=0)
    assert taken == Counter(one for batch in whole for one in batch["example_id"])
    assert set(taken.values()) == {1}


def read_once(ranks: list[Any]) -> list[str]:
    return [one for rank in ranks for one in next(rank)["example_id"]]
