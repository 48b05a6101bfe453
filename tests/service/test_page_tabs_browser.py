"""The tabs Store, Jobs and Models in a real Chromium."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from service.security.keys import KeyFile

from .browser import Browser
from .jobs.servers import wait_for
from .serving import Served, served
from .test_page_browser import NARROW, TOKENIZER, UNREACHABLE, WIDE

pytestmark = pytest.mark.slow

SPEC = {
    "split": "dev",
    "lang": "en",
    "fields": ["premise", "hypothesis"],
    "labels": [{"name": "label", "kind": "class", "names": ["yes", "no"]}],
    "tokenizer": TOKENIZER,
}


def pair(number: int) -> dict[str, Any]:
    texts = (f"Anna has sold {number} boats.", f"The key number {number} turned in its old lock.")
    segments = [{"text": text} for text in texts]
    example = {"example_id": f"pair-{number}", "segments": segments, "labels": {"label": "yes"}}
    return {"example": example}


def submit(client: httpx.Client, name: str, count: int) -> str:
    """Start a backfill of so many pairs and one rejected line; returns the job's id."""
    rejected = {"example_id": "lost", "reason": "example", "message": "the line has no hypothesis"}
    lines = [{"spec": SPEC}, *map(pair, range(count)), {"rejected": rejected}]
    return post_lines(client, name, lines)


def post_lines(client: httpx.Client, name: str, lines: list[dict[str, Any]]) -> str:
    body = "\n".join(map(json.dumps, lines))
    headers = {"content-type": "application/x-ndjson"}
    answer = client.post(f"/datasets/{name}/backfill", content=body, headers=headers)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def wait_for_job(client: httpx.Client, job: str) -> None:
    while client.get(f"/jobs/{job}").json()["state"] in ("queued", "running"):
        time.sleep(0.2)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose store has a dataset with a drop, and some texts that were sent to it."""
    folder = tmp_path_factory.mktemp("served")
    with served(folder, job_workers="1", job_shard_segments="20") as started:
        with started.client() as client:
            body = {"texts": ["Birds sing.", "It rained."], "tokenizer": TOKENIZER}
            assert client.post("/parse", json=body).status_code == 200
            wait_for_job(client, submit(client, "pairs", 30))
        yield started


@pytest.fixture(autouse=True)
def wide(browser: Browser) -> None:
    browser.resize(WIDE)
    browser.complaints()


def test_the_store_leads_from_datasets_to_an_example(service: Served, browser: Browser) -> None:
    browser.open(f"{service.url}/#store")
    browser.wait_for_text("parsebank-wordpiece-en")
    browser.click("#tab-store td details summary")
    assert "example: 1" in browser.text()
    browser.click("#tab-store a[href*='dataset=pairs']")
    browser.wait_for_text("1 to 20 of 30")
    browser.click("#tab-store nav a")
    browser.wait_for_text("21 to 30 of 30")
    browser.click("#tab-store a[href*='example=29']")
    browser.wait_for_text("What a trainer gets")
    browser.wait_for("document.querySelectorAll('#tab-store figure svg').length === 2")
    assert "Anna has sold 29 boats." in browser.text()
    for tag in ("12 PROPN", "35 root"):
        assert tag in browser.text()
    words = "document.querySelector('[data-picture=arcs]').textContent"
    assert "Anna" in browser.script(f"return {words}")
    browser.click("#tab-store a[href*='field=1']")
    browser.wait_for(f"document.querySelector('[data-picture=arcs]') && {words}.includes('lock')")
    browser.wait_for("document.querySelectorAll('#tab-store figure svg').length === 2")
    browser.click("#tab-store details[data-name=depth] summary")
    browser.wait_for("document.querySelector('#tab-store canvas')")
    assert browser.complaints() == []


def test_of_several_parsers_one_is_chosen(service: Served, browser: Browser) -> None:
    gold = "1\tRain\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    tree = {"example_id": "g", "segments": [{"conllu": gold}] * 2, "labels": {"label": "no"}}
    with service.client() as client:
        wait_for_job(client, submit(client, "mixed", 2))
        lines = [{"spec": {**SPEC, "mode": "gold"}}, {"example": tree}]
        wait_for_job(client, post_lines(client, "mixed", lines))
    browser.open(f"{service.url}/#store?dataset=mixed&split=dev&lang=en")
    browser.wait_for_text("choose one of them")
    browser.click("#tab-store ul a[href*='parser=']")
    browser.wait_for("/1 to [12] of [12]/.test(document.body.innerText)")


def test_a_reason_leads_to_the_query_that_names_the_examples(
    service: Served, browser: Browser
) -> None:
    browser.open(f"{service.url}/#store")
    browser.wait_for("document.querySelector('#tab-store td details')")
    browser.click("#tab-store td details summary")
    browser.click("#tab-store td details a")
    browser.wait_for("document.querySelector('#sql-query')?.value.includes('from drops')")
    browser.click("#tab-store form button")
    browser.wait_for_text("1 row.")
    browser.wait_for_text("the line has no hypothesis")
    assert browser.complaints() == []


def test_sql_from_the_keyboard_and_a_query_that_is_wrong(service: Served, browser: Browser) -> None:
    browser.open(f"{service.url}/#store")
    browser.wait_for("document.querySelector('#sql-query')")
    browser.type("#sql-sample", "Drops by reason")
    browser.type("#sql-query", "\ue009\ue007")  # Ctrl+Enter
    browser.wait_for(r"/\d rows?\./.test(document.body.innerText)")
    browser.type("#sql-sample", "Longest dependencies")
    browser.click("#tab-store form button")
    browser.wait_for("document.querySelector('#tab-store td a[href*=\"parse?key=\"]')")
    browser.type("#sql-query", "\ue000 nonsense")
    browser.click("#tab-store form button")
    browser.wait_for("document.querySelector('#tab-store [role=alert]')")
    told = browser.script("return document.querySelector('[role=alert]').innerText")
    assert told.startswith("Parser Error")
    assert told.endswith(" spec")
    query = "pattern { V [form=rained]; V -> S; S < V }"
    browser.open(f"{service.url}/#store?{urlencode({'sql': query})}")
    browser.wait_for("document.querySelector('#sql-query')?.value.includes('rained')")
    browser.click("#tab-store form button")
    browser.wait_for("document.querySelector('#tab-store a[href*=\"parse?key=\"]')")
    browser.click("#tab-store a[href*='parse?key=']")
    browser.wait_for("document.querySelector('.trees figure')?.textContent.includes('rained')")
    pressed = "[...document.querySelectorAll('button.word.marked')].map((one) => one.textContent)"
    assert browser.script(f"return {pressed}") == ["It", "rained"]


def test_a_job_is_followed_and_cancelled(service: Served, browser: Browser) -> None:
    with service.client() as client:
        job = submit(client, "many", 4000)
    browser.open(f"{service.url}/#jobs")
    browser.wait_for("document.querySelector('#tab-jobs progress')")
    browser.click(f"#tab-jobs a[href*='{job}']")
    browser.wait_for("document.querySelector('#tab-jobs progress')?.value > 0")
    browser.wait_for_text("left")
    browser.click("#tab-jobs .row button")
    browser.accept()
    browser.wait_for_text("The job is cancelled.")
    assert "Look at its examples" in browser.text()
    assert browser.complaints() == []


def test_the_list_of_jobs_changes_by_itself(service: Served, browser: Browser) -> None:
    with service.client() as client:
        job = submit(client, "later", 200)
    browser.open(f"{service.url}/#jobs")
    row = f"document.querySelector('#tab-jobs a[href*=\"{job}\"]')?.closest('tr').innerText"
    browser.wait_for(f"{row}.includes('done')")
    browser.type("#job-state", "failed")
    browser.wait_for_text("No job is failed.")


def test_a_model_is_unloaded_and_loaded(service: Served, browser: Browser) -> None:
    browser.open(f"{service.url}/#models")
    browser.wait_for("document.querySelector('button[aria-label^=Unload]')")
    assert "lemmas" in browser.text()
    browser.click("button[aria-label^=Unload]")
    browser.wait_for_text("parsebank/english is unloaded.")
    browser.click("button[aria-label^=Load]")
    browser.wait_for_text("parsebank/english is loaded.")
    assert browser.complaints() == []


def views(url: str) -> list[str]:
    """Addresses of every view of the tabs."""
    part = f"dataset=pairs&tokenizer={TOKENIZER}&split=dev&lang=en"
    job = httpx.get(f"{url}/jobs").json()[-1]["id"]
    places = ("store", f"store?{part}", f"store?{part}&example=0", "jobs", f"jobs?job={job}")
    return [f"{url}/#{place}" for place in (*places, "models")]


def test_every_view_fits_a_telephone_and_has_names_for_its_fields(
    service: Served, browser: Browser, tmp_path: Path
) -> None:
    browser.resize(NARROW)
    for number, url in enumerate(views(service.url)):
        browser.open(url)
        browser.wait_for("document.querySelector('main table')")
        browser.wait_for("!document.body.innerText.includes('...')")
        assert browser.width() <= NARROW, url
        assert browser.script(UNREACHABLE) == [], url
        rows = "return [...document.querySelectorAll('.wide tr')].map((row) => row.offsetHeight)"
        assert max(browser.script(rows)) < 90, url
        for scheme in ("light", "dark"):
            browser.colours(scheme)
            browser.screenshot(tmp_path / f"{number}-{scheme}.png")
        repeated = "[...document.querySelectorAll('[id]')].map((one) => one.id)"
        ids = browser.script(f"return {repeated}")
        assert len(ids) == len(set(ids)), url
        fields = "[...document.querySelectorAll('main input, main select, main textarea')]"
        unnamed = f"return {fields}.filter((one) => !one.labels.length).map((one) => one.outerHTML)"
        assert browser.script(unnamed) == [], url
        captions = "[...document.querySelectorAll('main table')].every((one) => one.caption)"
        assert browser.script(f"return {captions}"), url


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A service with keys, and a key that may read."""
    folder = tmp_path_factory.mktemp("guarded")
    file = KeyFile(folder / "keys.json")
    reader, _ = file.add("reader", role="read")
    owner, _ = file.add("owner", role="admin")
    with served(folder, keys_file=str(file.path), job_workers="0") as started:
        with started.client() as client:
            client.headers["X-API-Key"] = owner
            body = {"text": "Birds sing.", "tokenizer": TOKENIZER}
            assert client.post("/parse", json=body).status_code == 200
            submit(client, "pairs", 3)
            wait_for(lambda: "adhoc" in client.get("/datasets").text)
        yield started, reader


def test_what_a_key_may_not_do_is_said(guarded: tuple[Served, str], browser: Browser) -> None:
    service, reader = guarded
    browser.open(f"{service.url}/#store")
    browser.wait_for_text("this service needs an API key")
    assert not browser.script("return document.querySelector('#key-form').hidden")
    browser.type("#key", f"{reader}\ue007")
    browser.wait_for_text("SQL reads all that is stored, and so takes a key with the role admin")
    browser.wait_for_text("yours has the role read")
    browser.wait_for_text("adhoc")
    assert browser.script("return document.querySelector('#tab-store form button').disabled")
    assert browser.script("return document.querySelectorAll('#tab-store tbody a').length") == 0
    here = "location.hash = arguments[0]"
    browser.script(here, "#store?dataset=adhoc")
    browser.wait_for_text("forbidden")
    browser.script(here, "#models")
    browser.wait_for_text("Loading and unloading takes a key with the role admin")
    assert not browser.script("return document.querySelector('#tab-models button')")
    browser.script(here, "#jobs")
    browser.wait_for("document.querySelector('#tab-jobs tbody a')")
    browser.wait_for_text("A job that is queued waits for a worker")
    browser.click("#tab-jobs tbody a")
    browser.wait_for_text("The job is queued. It waits for a worker")
    browser.wait_for_text("Cancelling and trying again takes a key with the role admin")
    assert not browser.script("return document.querySelector('#tab-jobs button')")
