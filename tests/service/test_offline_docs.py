"""``/docs`` and ``/redoc`` show the API without a network, and run no code but the files' own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from .browser import Browser
from .serving import Served, served

LOGO = "https://cdn.redoc.ly/"
REFUSED = {"/docs": [], "/redoc": ["Applying inline style", LOGO]}
"""What the policy keeps ReDoc from: a style of scroll bars that we turn off, and a logo of its
makers. Everything else that the console says is a fault."""


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", ["/docs", "/redoc"])
async def test_a_page_loads_only_files_of_the_service(client: httpx.AsyncClient, path: str) -> None:
    page = await client.get(path)
    assert "'unsafe" not in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert re.findall(r"<script[^>]*>(?!</script>)|<style| on\w+=", page.text) == []
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert len(addresses) == 4
    for address in addresses:
        file = await client.get(f"/{address}")
        assert file.status_code == 200
        assert file.headers["content-type"].split(";")[0] in (
            *("text/css", "text/javascript", "image/png"),
        )


@pytest.mark.asyncio(loop_scope="module")
async def test_no_other_file_is_served(client: httpx.AsyncClient) -> None:
    for name in ("other.js", "..%2f__init__.py", "redoc"):
        assert (await client.get(f"/docs/{name}")).status_code == 404


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served"), job_workers="0") as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize(("path", "shown"), [("/docs", "/parse"), ("/redoc", "Request samples")])
def test_the_api_is_shown_without_a_network(service, browser, path, shown) -> None:
    browser.open(service.url + path)
    browser.wait_for_text("Texts in, Universal Dependencies out")
    browser.wait_for_text(shown)
    complaints = browser.complaints()
    assert len(complaints) == len(REFUSED[path])
    for line, words in zip(complaints, REFUSED[path], strict=True):
        assert words in line
    assert all(url.startswith((service.url, LOGO, "data:")) for url in browser.requested())


@pytest.mark.slow
def test_a_route_can_be_tried(service: Served, browser: Browser) -> None:
    browser.open(f"{service.url}/docs#/health/live")
    browser.wait_for("document.querySelector('.opblock.is-open .try-out__btn')")
    browser.script("document.querySelector('.opblock.is-open .try-out__btn').click()")
    browser.wait_for("document.querySelector('.opblock.is-open .execute')")
    browser.script("document.querySelector('.opblock.is-open .execute').click()")
    browser.wait_for("document.querySelector('.live-responses-table')")
    assert "200" in browser.script(
        "return document.querySelector('.live-responses-table').innerText"
    )
    assert browser.complaints() == []
