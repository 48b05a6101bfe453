"""The pages keep up with the project: links, anchors, tables, names."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.docs.blocks import DOCS, PAGES, ROOT

LINKED = [*PAGES, ROOT / "CONTRIBUTING.md"]
GENERATED = [page for page in PAGES if "<!-- generated:" in page.read_text("utf-8")]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(page: Path) -> str:
    return re.sub(r"^( *)```.*?^\1```$", "", page.read_text("utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_code(page), re.MULTILINE)
    words = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in words}


@pytest.mark.parametrize("page", LINKED, ids=named)
def test_every_relative_link_leads_to_a_page_and_heading(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", GENERATED, ids=named)
def test_generated_tables_are_up_to_date(page: Path) -> None:
    """Refresh them with ``python docs/generate.py``."""
    text = page.read_text("utf-8")
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.refreshed(text) == text


def test_every_page_is_reached_from_the_index() -> None:
    reached, waiting = set(), [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)#\s]+)", without_code(page))
        waiting += [(page.parent / link).resolve() for link in links if "://" not in link]
    assert [named(page) for page in DOCS.rglob("*.md") if page not in reached] == []


def test_every_page_that_the_code_names_exists() -> None:
    """Messages, help and docstrings point to pages that are there."""
    packages = ("syntax", "featurestore", "service", "clients", "trainer", "benchmarks", "tests")
    named_pages = {
        (str(module.relative_to(ROOT)), name)
        for package in packages
        for module in (ROOT / package).rglob("*.py")
        for name in re.findall(r"\bdocs/[\w/-]+\.md", module.read_text("utf-8"))
    }
    assert [one for one in sorted(named_pages) if not (ROOT / one[1]).exists()] == []
