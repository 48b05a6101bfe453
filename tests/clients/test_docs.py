"""The pages about clients and readers keep up with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clients import AsyncClient, Client
from clients.benchmarks import BENCHMARKS
from clients.client.calls import ParseOptions
from syntax.batches import Template
from syntax.errors import UnknownNameError

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "client.md").read_text("utf-8")
PUBLIC = [name for name in vars(Client) if not name.startswith("_")]


def test_every_template_of_the_guide_is_of_fields_that_a_reader_has():
    guide = (DOCS / "sequences.md").read_text("utf-8").partition("| `template` |")[2]
    rows = guide.partition("\n\n")[0]
    templates = re.findall(r'\| `"([^"]+)"`', rows)
    assert len(templates) == 5
    for template in templates:
        assert any(_fits(reader.fields, template) for reader in BENCHMARKS.values()), template


def _fits(fields, template):
    try:
        Template.of(fields, template)
    except UnknownNameError:
        return False
    return True


@pytest.mark.parametrize("name", PUBLIC)
def test_every_method_is_in_the_reference(name):
    assert re.search(rf"\b{name}\b", REFERENCE)


@pytest.mark.parametrize("name", ParseOptions.__annotations__)
def test_every_option_is_in_the_reference(name):
    assert f"`{name}" in REFERENCE


def test_both_clients_have_the_same_methods():
    asynchronous = [name for name in vars(AsyncClient) if not name.startswith("_")]
    assert sorted(asynchronous) == sorted("aclose" if n == "close" else n for n in PUBLIC)


def test_the_example_reader_reads(tmp_path):
    guide = (DOCS / "extend" / "benchmark.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    namespace: dict = {}
    exec(code.replace("register(Benchmark(", "(Benchmark("), namespace)
    lines = '{"riddle": "What flies?", "answer": "Time.", "right": "yes"}\n{"riddle": "What?"}\n'
    (tmp_path / "dev.en.jsonl").write_text(lines, "utf-8")
    good, bad = namespace["RIDDLES"].read(tmp_path, "dev", "en")
    assert good.labels == {"right": "yes"}
    assert (bad.example_id, bad.reason) == ("dev-2", "example")
