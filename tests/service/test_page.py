"""The files of the page: who may have them, what a browser may do with them."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from service import page
from syntax.trees.ud import DEPREL, UPOS

asyncio_module = pytest.mark.asyncio(loop_scope="module")

STATIC = Path(page.__file__).parent / "static"
FILES = sorted(path.name for path in STATIC.iterdir())


@asyncio_module
async def test_the_page_and_each_of_its_files_are_answered(client: httpx.AsyncClient) -> None:
    found = await client.get("/")
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert found.text == (STATIC / "index.html").read_text("utf-8")
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg"}
    for name in FILES:
        answer = await client.get(f"/page/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
        assert (await client.head(f"/page/{name}")).content == b""


@asyncio_module
async def test_a_browser_asks_whether_its_copy_is_right(client: httpx.AsyncClient) -> None:
    first = await client.get("/page/main.js")
    assert first.headers["cache-control"] == "no-cache"
    again = await client.get("/page/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == page.CONTENT_SECURITY_POLICY
    assert (await client.get("/page/api.js")).headers["etag"] != first.headers["etag"]
    stale = await client.get("/page/main.js", headers={"If-None-Match": '"other"'})
    assert stale.status_code == 200


@asyncio_module
@pytest.mark.parametrize("path", ["/", "/page/main.js"])
async def test_the_policy_admits_only_files_of_the_service(client, path: str) -> None:
    headers = (await client.get(path)).headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@asyncio_module
@pytest.mark.parametrize("name", ["__init__.py", "none.js", "..%2F__init__.py", "%2Fetc%2Fpasswd"])
async def test_nothing_else_is_a_file_of_the_page(client, name: str) -> None:
    answer = await client.get(f"/page/{name}")
    assert answer.status_code == 404
    assert answer.json()["error_type"] == "not_found"


@asyncio_module
async def test_the_page_needs_no_key_and_what_it_asks_for_does(serve, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    async with serve(keys_file=keys, rate_limit="1/hour") as client:
        for path in ("/", "/page/main.js", "/page/page.css", "/"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert "ratelimit-limit" not in answer.headers
        assert (await client.post("/draw", json={"conllu": ""})).status_code == 401
        assert (await client.get("/info")).status_code == 401


def test_the_files_name_only_each_other() -> None:
    """Nothing is loaded from elsewhere, and nothing that is not there."""
    for name in FILES:
        text = (STATIC / name).read_text("utf-8")
        assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}, name
        named = re.findall(r"from '\./([\w.]+)'|(?:href|src)=\"page/([\w.]+)\"", text)
        assert {one or other for one, other in named} <= {*FILES}, name
        assert len(text.splitlines()) <= 400, name


def test_the_tags_of_the_page_are_those_of_features() -> None:
    code = (STATIC / "ud.js").read_text("utf-8")
    for name, tags in (("UPOS", UPOS), ("DEPREL", DEPREL)):
        found = re.search(rf"const {name} = (.*?);", code, re.S)
        assert found
        assert tuple("".join(re.findall(r"'(.*?)'", found[1])).split()) == tags


def test_the_page_has_no_code_inside() -> None:
    html = (STATIC / "index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html)
    for path in STATIC.glob("*.js"):
        code = path.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(", code), path.name
