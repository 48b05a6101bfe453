"""The page and its tab Parse in a real Chromium, against a real service."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from service.security.keys import KeyFile

from .browser import Browser
from .serving import Served, served

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[1] / "fixtures" / "conllu"
PARSER = "udpipe/english-ewt"
TEXT = "Birds don't sing. Store it."
WIDE, NARROW = 1280, 400
DONE = "document.querySelectorAll('.derived figure').length >= 3"
DOWN, ENTER = "\ue015", "\ue007"


def conllu(forms: str, heads: list[int]) -> str:
    """A sentence of words with these heads."""
    rows = enumerate(zip(forms.split(), heads, strict=True), 1)
    return "".join(
        f"{at}\t{form}\t_\tX\t_\t_\t{head}\t{'dep' if head else 'root'}\t_\t_\n"
        for at, (form, head) in rows
    )


HEBREW = conllu("הילד הקטן קרא ספר ארוך מאוד על ציפורים", [3, 1, 0, 3, 4, 5, 8, 4])
JAPANESE = conllu("鳥 は 木 の 上 で 歌 う", [7, 1, 5, 3, 7, 5, 0, 7])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served")) as started:
        yield started


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, an accessibility check."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm, to install axe-core")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "axe-core@4"]
    installed = subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
    found = folder / "node_modules" / "axe-core" / "axe.min.js"
    if installed.returncode or not found.exists():
        pytest.skip("needs the npm registry, to install axe-core")
    return found.read_text("utf-8")


def show(browser: Browser, service: Served, **view: str) -> None:
    """Open a view of the tab Parse by its link, and wait until all of it is there."""
    browser.open(f"{service.url}/#parse?{urlencode(view)}")
    browser.wait_for(DONE)


def hover(browser: Browser, selector: str) -> None:
    """Move the pointer over an element."""
    found = browser.command("/element", using="css selector", value=selector)
    move = {"type": "pointerMove", "duration": 0, "origin": found, "x": 0, "y": 0}
    mouse = {"type": "pointer", "id": "mouse", "actions": [move]}
    browser.command("/actions", actions=[mouse])


def press(browser: Browser, name: str) -> None:
    """Press the first button of this name, wherever it is."""
    browser.script(
        "[...document.querySelectorAll('button')]"
        ".find((one) => one.textContent === arguments[0]).click()",
        name,
    )


def marked(browser: Browser) -> dict[str, list[str]]:
    """Ids of the words that are marked, by where: in each picture, and in the table."""
    return dict(
        browser.script(
            """const found = {};
            for (const one of document.querySelectorAll('.marked')) {
              const where = one.closest('figure')?.dataset.picture ?? 'table';
              (found[where] ??= []).push(one.dataset.word);
            }
            return found;"""
        )
    )


def test_a_text_is_typed_parsed_and_shown_again_by_its_link(browser, service) -> None:
    browser.complaints()
    browser.open(f"{service.url}/")
    browser.wait_for("document.querySelector('#parse-text')?.value")
    browser.script("document.querySelector('#parse-text').value = ''")
    browser.type("#parse-text", TEXT)
    browser.click("button.primary")
    browser.wait_for(DONE)
    told = browser.script("return document.querySelector('[role=status].status').textContent")
    assert told == f"2 sentences, analysed by {PARSER}."
    pictures = "return [...document.querySelectorAll('figure')].map((one) => one.dataset.picture)"
    assert browser.script(pictures) == ["arcs", "wordpieces", "depth", "distance", "ancestor"]
    for shown in ("don't", "nsubj", "multiword token"):
        assert shown in browser.text()

    browser.click("input[value=hierarchy]")
    browser.wait_for("document.querySelector('figure[data-picture=hierarchy]')")
    press(browser, "Next")
    link = browser.script("return location.href")
    assert "layout=hierarchy" in link
    assert "sentence=2" in link
    table = "return document.querySelector('.lower table').innerText"
    browser.wait_for("document.querySelector('.lower table').innerText.includes('Store')")
    before = browser.script(table)
    browser.open(link)
    browser.wait_for(DONE)
    assert browser.script(table) == before
    assert browser.script(pictures)[0] == "hierarchy"
    assert browser.complaints() == []
    assert all(one.startswith(service.url) for one in browser.requested())


def test_a_word_is_marked_everywhere_by_pointer_and_by_keyboard(browser, service) -> None:
    browser.resize(WIDE, 2400)  # nothing has to scroll below the pointer
    show(browser, service, text=TEXT)
    hover(browser, "figure[data-picture=wordpieces] g[data-word='1'] rect")
    found = marked(browser)
    assert set(found) == {"table", "arcs", "wordpieces", "depth", "distance", "ancestor"}
    assert all("1" in words for words in found.values())
    assert {*found["table"], *found["depth"]} == {"1"}
    assert all("1" in words.split() for words in found["distance"])

    hover(browser, "figure[data-picture=distance] g[data-word='1 4']")
    found = marked(browser)
    assert {*found["table"]} == {"1", "4"}
    assert {*found["distance"]} <= {"1", "4", "1 4", "4 1"}

    browser.type("button.word", DOWN)
    assert {*marked(browser)["table"]} == {"2"}
    assert browser.script("return document.activeElement.dataset.word") == "2"
    browser.type("button.word[data-word='2']", ENTER)
    hover(browser, "h1")
    assert {*marked(browser)["depth"]} == {"2"}
    pressed = "return document.querySelector('[aria-pressed=true]').dataset.word"
    assert browser.script(pressed) == "2"


def test_empty_nodes_and_multiword_tokens_of_conllu_are_shown(browser, service) -> None:
    show(browser, service, kind="conllu", text=(FIXTURES / "everything.conllu").read_text("utf-8"))
    text = browser.text()
    assert "empty node" in text
    assert "multiword token" in text
    assert browser.script("return !!document.querySelector('figure [font-style=italic]')")
    assert "Copy JSON" not in text


def test_two_parsers_stand_side_by_side(browser, service) -> None:
    browser.resize(WIDE)
    other = "udpipe/english-ewt-full"
    show(browser, service, text="Time flies like an arrow.", parser=PARSER, compare=other)
    assert "Of 6 words, 6 have the same head, 4 the same head and relation." in browser.text()
    tops = "return [...document.querySelectorAll('.trees figure')].map((f) => f.offsetTop)"
    assert len(set(browser.script(tops))) == 1
    assert len(browser.script(tops)) == 2


def test_errors_are_shown_as_the_service_tells_them(browser, service) -> None:
    browser.open(f"{service.url}/#parse?{urlencode({'text': TEXT, 'tokenizer': 'no/such'})}")
    browser.wait_for_text("unknown_tokenizer")
    told = browser.script("return document.querySelector('[role=alert]').textContent")
    with service.client() as client:
        body = {"text": TEXT, "tokenizer": "no/such"}
        assert client.post("/parse", json=body).json()["message"] in told
    assert browser.script("return !!document.querySelector('figure[data-picture=arcs]')")
    browser.open(f"{service.url}/#parse?{urlencode({'text': ' '})}")
    browser.wait_for_text("empty_text")
    browser.open(f"{service.url}/#parse?{urlencode({'kind': 'conllu', 'text': 'no columns'})}")
    browser.wait_for_text("conllu:1")


def test_everything_can_be_saved(browser, service, tmp_path: Path) -> None:
    show(browser, service, text=TEXT)
    browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    files = {
        "Save CoNLL-U": "parse.conllu",
        "Save JSON": "parse.json",
        "Save SVG": "arcs.svg",
        "Save PNG": "arcs.png",
    }
    for button, name in files.items():
        press(browser, button)
        browser.wait_for_text(f"Saved {name}.")
    saved = [tmp_path / name for name in files.values()]
    with service.client() as client:
        parsed = client.post("/parse?format=conllu", json={"text": TEXT}).text
        svg = client.post("/draw", json={"conllu": parsed, "pictures": ["arcs"]}).json()
    assert wait_for_file(saved[0]) == parsed.encode()
    assert b'"distance"' in wait_for_file(saved[1])
    assert wait_for_file(saved[2]).decode() == svg["pictures"]["arcs"]
    assert wait_for_file(saved[3]).startswith(b"\x89PNG")


def test_texts_of_any_script_and_width_are_drawn_properly(browser, service) -> None:
    long = conllu("Birds sing " * 20, [0, *[1] * 39])
    for text, lang in ((HEBREW, "he"), (JAPANESE, "ja"), (long, "en")):
        for width, scheme in product((WIDE, NARROW), ("light", "dark")):
            browser.resize(width)
            browser.colours(scheme)
            show(browser, service, kind="conllu", lang=lang, text=text)
            assert browser.width() <= width, (lang, width)
    browser.resize(NARROW)
    show(browser, service, kind="conllu", lang="he", text=HEBREW)
    first, second, frame = browser.script(
        """const figure = document.querySelector('figure[data-picture=arcs]');
        const left = (one) => one.getBoundingClientRect().left;
        const word = (id) => left(figure.querySelector(`g[data-word="${id}"] > text`));
        return [word(1), word(2), left(figure)];"""
    )
    assert frame < second < first < NARROW  # the sentence begins at the right, and is in view


def test_colours_follow_the_system_until_the_user_chooses(browser, service) -> None:
    paper = "return getComputedStyle(document.body).backgroundColor"
    ink = "return getComputedStyle(document.querySelector('figure .ink-fill')).fill"
    browser.resize(WIDE)
    browser.colours("dark")
    show(browser, service, text=TEXT)
    dark = browser.script(paper), browser.script(ink)
    browser.colours("light")
    light = browser.script(paper), browser.script(ink)
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    choose = (
        "const theme = document.querySelector('#theme'); theme.value = arguments[0];"
        "theme.dispatchEvent(new Event('change'))"
    )
    browser.script(choose, "dark")
    assert (browser.script(paper), browser.script(ink)) == dark
    browser.script(choose, "")
    assert (browser.script(paper), browser.script(ink)) == light


def test_a_key_is_asked_for_used_and_not_kept(browser, tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    secret, _ = file.add("ada", role="read")
    with served(tmp_path, keys_file=str(file.path)) as guarded:
        browser.open(f"{guarded.url}/#parse?{urlencode({'text': TEXT})}")
        browser.wait_for_text("unauthorized")
        assert browser.script("return document.querySelector('#key-panel').open")
        browser.type("#key", f"{secret}{ENTER}")
        browser.wait_for_text("forbidden")  # to parse takes another role
        stored = "return [sessionStorage.length, JSON.stringify(localStorage), document.cookie]"
        sessions, local, cookie = browser.script(stored)
        assert sessions == 1
        assert secret not in local + cookie
        browser.click("#key-forget")
        browser.wait_for_text("unauthorized")
        assert browser.script("return sessionStorage.length") == 0


def test_the_accessibility_check_finds_nothing_serious(browser, service, axe: str) -> None:
    views = [f"parse?{urlencode({'text': TEXT, 'compare': PARSER})}", "store", "jobs", "models"]
    for width, scheme, view in product((WIDE, NARROW), ("light", "dark"), views):
        browser.resize(width)
        browser.colours(scheme)
        browser.open(f"{service.url}/#{view}")
        browser.wait_for(DONE if view.startswith("parse") else "document.querySelector('main h1')")
        assert serious(browser, axe) == [], (width, scheme, view)


def serious(browser: Browser, axe: str) -> list[Any]:
    """What axe finds, but for what it calls minor or moderate."""
    browser.script(axe)
    return list(
        browser.script(
            """return axe.run(document, {}).then(({violations}) => violations
              .filter(({impact}) => !['minor', 'moderate'].includes(impact))
              .map(({id, nodes}) => [id, nodes[0].html, nodes[0].failureSummary]))"""
        )
    )


def wait_for_file(path: Path) -> bytes:
    for _ in range(300):
        if path.exists():
            return path.read_bytes()
        time.sleep(0.1)
    pytest.fail(f"{path.name} was not saved")
