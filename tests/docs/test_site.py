"""The site of the pages, as ``make docs`` builds it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import DOCS, ROOT

pytest.importorskip("zensical", reason="needs the extra docs")

BUILD = [sys.executable, "-c", "from zensical.main import cli; cli()", "build", "--strict"]
PACKAGES = ("syntax", "featurestore", "clients")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the site is built from."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(DOCS, folder / "docs")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package)
    return folder


def build(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(BUILD, cwd=project, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(project: Path) -> None:
    built = build(project)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = sorted((project / "build" / "site").rglob("*.html"))
    assert len(pages) > 50
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")
    assert [(page.name, found) for page in pages for found in loads.findall(page.read_text())] == []
    names = (project / "build" / "site" / "reference" / "python" / "index.html").read_text()
    for name in ("syntax.DependencyTree", "featurestore.open_store", "clients.Client.parse"):
        assert f'id="{name}"' in names


@pytest.mark.slow
@pytest.mark.parametrize("bad", ["[x](nowhere.md)", "[x](parse.md#nowhere)", "::: syntax.nowhere"])
def test_what_leads_nowhere_breaks_the_build(project: Path, bad: str) -> None:
    page = project / "docs" / "quickstart.md"
    before = page.read_text("utf-8")
    page.write_text(f"{before}\n{bad}\n", encoding="utf-8")
    try:
        assert build(project).returncode != 0
    finally:
        page.write_text(before, encoding="utf-8")


def test_every_page_is_in_the_menu() -> None:
    """Decisions are reached from their index."""
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    listed = re.findall(r"[\w/-]+\.md", str(menu))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    decisions = {page for page in pages if re.match(r"adr/\d", page)}
    assert sorted(listed) == sorted(pages - decisions)
