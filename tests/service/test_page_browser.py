"""The page and its tab Parse in a real Chromium, against a real service."""

from __future__ import annotations

import asyncio
import json
import re
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
from .parser_processes import children, until
from .serving import Served, served

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[1] / "fixtures" / "conllu"
PARSER = "udpipe/english-ewt"
OWN = "parsebank/english"
TEXT = "Birds don't sing. Store it."
LONG = (
    "The old linguist's dogs did not bark at the postman who brought her three letters this week. "
    "She hears them."
)
WIDE, NARROW = 1280, 400
DONE = "document.querySelector('.trees figure') && !document.querySelector('[aria-busy]')"
# What scrolls without a stop of the Tab key, or without the shadow that says so.
UNREACHABLE = """return [...document.querySelectorAll('main *')]
  .filter((one) => getComputedStyle(one).overflowX === 'auto' && one.tagName !== 'TEXTAREA')
  .filter((one) => one.scrollWidth > one.clientWidth)
  .filter((one) => one.tabIndex !== 0
    || !getComputedStyle(one).backgroundAttachment.includes('local'))
  .map((one) => one.outerHTML.slice(0, 80))"""
DOWN, RIGHT, ENTER, ESCAPE = "\ue015", "\ue014", "\ue007", "\ue00c"
TOKENIZER = "parsebank-wordpiece-en"


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
    folder = tmp_path_factory.mktemp("served")
    with served(folder, parsers=json.dumps({"en": PARSER})) as started:
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


def choose(browser: Browser, selector: str, value: str) -> None:
    """Choose an option of a select."""
    browser.script(
        "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
        "field.dispatchEvent(new Event('change', {bubbles: true}))",
        selector,
        value,
    )


def field(browser: Browser, name: str) -> str:
    """The value of a field of the form."""
    return str(browser.script(f"return document.querySelector('#parse-{name}').value"))


def painted(browser: Browser, name: str) -> str:
    """The pixels of a heat map."""
    return str(
        browser.script(f"return document.querySelector('[data-picture={name}] canvas').toDataURL()")
    )


def press_summary(browser: Browser, text: str) -> None:
    """Open or close the part whose summary begins so."""
    browser.script(
        "[...document.querySelectorAll('summary')]"
        ".find((one) => one.textContent.startsWith(arguments[0])).click()",
        text,
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
    assert browser.script(pictures) == ["arcs", "wordpieces"]
    for shown in ("don't", "nsubj", "multiword token"):
        assert shown in browser.text()

    browser.click("input[value=hierarchy]")
    browser.wait_for("document.querySelector('figure[data-picture=hierarchy]')")
    press(browser, "Next")
    press_summary(browser, "Depth")
    browser.wait_for("document.querySelector('[data-picture=depth] canvas')")
    link = browser.script("return location.href")
    assert "layout=hierarchy" in link
    assert "sentence=2" in link
    assert "matrices=depth" in link
    table = "return document.querySelector('.lower table').innerText"
    browser.wait_for("document.querySelector('.lower table').innerText.includes('Store')")
    before = browser.script(table)
    browser.open(link)
    browser.wait_for(DONE)
    assert browser.script(table) == before
    browser.wait_for("document.querySelector('[data-picture=depth] canvas')")
    assert browser.script(pictures) == ["hierarchy", "wordpieces", "depth"]
    assert browser.complaints() == []
    assert all(one.startswith(service.url) for one in browser.requested())


def test_a_word_is_marked_everywhere_by_pointer_and_by_keyboard(browser, service) -> None:
    browser.resize(WIDE, 2400)  # nothing has to scroll below the pointer
    show(browser, service, text=TEXT, matrices="depth,distance")
    browser.wait_for("document.querySelectorAll('canvas').length === 2")
    before = painted(browser, "depth")
    hover(browser, "figure[data-picture=wordpieces] g[data-word='1'] rect")
    found = marked(browser)
    assert set(found) == {"table", "arcs", "wordpieces"}
    assert all("1" in words for words in found.values())
    assert {*found["table"]} == {"1"}
    assert painted(browser, "depth") != before

    frame = "[data-picture=distance] .heat"  # from the first cell two to the right, one down
    browser.type(frame, f"{RIGHT}{RIGHT}{RIGHT}{DOWN}")
    told = browser.script("return document.querySelector('[data-picture=distance] output').value")
    shown = "[...document.querySelectorAll('[data-picture=wordpieces] g > rect + text')]"
    pieces = browser.script(f"return {shown}.map((one) => one.textContent)")
    assert told.startswith(f"{pieces[1]}, {pieces[2]}: ")
    assert len(marked(browser)["table"]) in (1, 2)
    browser.script("document.querySelector('[data-picture=distance] .heat').blur()")

    browser.type("button.word", DOWN)
    assert {*marked(browser)["table"]} == {"2"}
    assert browser.script("return document.activeElement.dataset.word") == "2"
    browser.type("button.word[data-word='2']", ENTER)
    hover(browser, "#parse-text")
    assert {*marked(browser)["table"]} == {"2"}
    pressed = "return document.querySelector('[aria-pressed=true]')?.dataset.word ?? 'none'"
    assert browser.script(pressed) == "2"
    browser.type("button.word[data-word='2']", ESCAPE)
    hover(browser, "#parse-text")
    assert browser.script(pressed) == "none"
    assert marked(browser) == {}


def test_empty_nodes_and_multiword_tokens_of_conllu_are_shown(browser, service) -> None:
    show(browser, service, kind="conllu", text=(FIXTURES / "everything.conllu").read_text("utf-8"))
    text = browser.text()
    assert "empty node" in text
    assert "multiword token" in text
    assert browser.script("return !!document.querySelector('figure [font-style=italic]')")
    assert "Copy JSON" not in text


def test_two_parsers_stand_side_by_side_and_what_differs_is_marked_in_both(
    browser, service
) -> None:
    browser.resize(WIDE)
    for layout in ("arcs", "hierarchy"):
        text = "Time flies like an arrow."
        show(browser, service, text=text, parser=PARSER, compare=OWN, layout=layout)
        listed = "[...document.querySelectorAll('tr[data-word]')].map((one) => one.dataset.word)"
        found = browser.script(
            """return [...document.querySelectorAll('.trees figure')].map((tree) =>
              [...new Set([...tree.querySelectorAll('.differs')].map((one) => one.dataset.arc))])"""
        )
        assert len(found[0]) == 2
        assert sorted(found[0]) == sorted(found[1]) == sorted(browser.script(f"return {listed}"))
        tops = "return [...document.querySelectorAll('.trees figure')].map((f) => f.offsetTop)"
        first, second = browser.script(tops)
        assert first == second
    assert "Of 6 words, 6 have the same head, 4 the same head and relation." in browser.text()
    row = browser.script("return document.querySelector('tr[data-word]').innerText")
    assert re.fullmatch(r"\d \w+\t\w+ of \d \w+\t\w+ of \d \w+", row)
    heading = "return document.querySelector('#{}').textContent"
    for part in ("words", "pieces", "matrices"):
        assert browser.script(heading.format(part)).endswith(f", by {PARSER}"), part


def test_two_wide_trees_stand_one_below_the_other(browser, service) -> None:
    browser.resize(WIDE)
    show(browser, service, text=LONG, compare=OWN)
    first, second = browser.script(
        """return [...document.querySelectorAll('.trees figure .scroll')]
          .map((one) => [one.offsetTop, one.scrollWidth - one.clientWidth]);"""
    )
    assert first[0] < second[0]
    assert first[1] == second[1] == 0  # all of either is in view
    pieces = "document.querySelector('figure[data-picture=wordpieces] .scroll')"
    assert browser.script(f"return {pieces}.clientWidth") > WIDE - 100


def test_a_parser_is_not_offered_to_be_compared_with_itself(browser, service) -> None:
    offered = "return [...document.querySelectorAll('#parse-compare option')].map((o) => o.value)"
    show(browser, service, text=TEXT, compare=PARSER)  # an old link still opens
    assert len(browser.script("return document.querySelectorAll('.trees figure')")) == 2
    assert browser.script(offered) == ["", OWN]
    browser.type("#parse-parser", OWN)
    assert browser.script(offered) == ["", PARSER]


def test_the_tree_is_in_view_after_parsing(browser, service) -> None:
    browser.complaints()
    for width, height in ((WIDE, 900), (NARROW, 800)):
        browser.resize(width, height)
        browser.open(f"{service.url}/")
        browser.wait_for("document.querySelector('#parse-text')?.value")
        browser.type("#parse-text", ENTER.join(["", TEXT, TEXT]))
        browser.click("button.primary")
        browser.wait_for(DONE)
        top, bottom, options = browser.script(
            """const {top, bottom} = document.querySelector('.trees').getBoundingClientRect();
            return [top, bottom, document.querySelector('.options').open]"""
        )
        assert 0 <= top < bottom <= height, (width, top, bottom)
        assert not options
    assert browser.complaints() == []


def test_next_keeps_the_focus_and_sends_the_document_once(browser, service) -> None:
    show(browser, service, text=f"{TEXT} It works.", matrices="depth")
    browser.wait_for("document.querySelector('canvas')")
    browser.script(
        """window.sent = [];
        const send = window.fetch;
        window.fetch = (url, options) => {
          sent.push(options.body ?? '');
          return send(url, options);
        };
        document.querySelector('.chooser button:last-child').focus();"""
    )
    named = "document.activeElement.textContent"
    for sentence in ("Store it.", "It works."):
        browser.script("document.activeElement.click()")
        words = sentence.split()[0]
        browser.wait_for(f"document.querySelector('.lower table').innerText.includes('{words}')")
        browser.wait_for(DONE)
        assert browser.script(f"return {named}") == "Next"
    browser.script("document.activeElement.click()")  # there is no further one
    assert str(browser.script("return document.querySelector('#sentence').value")) == "3"
    bodies = browser.script("return sent")
    assert len(bodies) == 4
    assert sum("Birds" in body for body in bodies) == 2  # once for each change


def test_a_wide_tree_is_zoomed_and_fits(browser, service) -> None:
    browser.resize(WIDE)
    long = " ".join([LONG.split(".")[0]] * 5)
    show(browser, service, kind="sentence", text=f"{long}.", matrices="distance")
    browser.wait_for("document.querySelector('canvas')")
    frame = "document.querySelector('.trees .scroll')"
    width = f"{frame}.querySelector('svg').getBoundingClientRect().width"
    whole = browser.script(f"return {width}")
    assert whole > 3 * WIDE
    browser.click(".trees .zoom button:last-child")
    assert browser.script(f"return {frame}.scrollWidth <= {frame}.clientWidth")
    assert browser.script("return document.querySelector('.heat').scrollWidth") <= WIDE
    for layout in ("hierarchy", "arcs"):
        browser.click(f"input[value={layout}]")
        browser.wait_for(f"document.querySelector('.trees [data-picture={layout}]')")
    browser.wait_for(f"{width} < {WIDE}")  # the zoom is kept
    browser.click(".trees .zoom button:nth-child(2)")
    assert browser.script(f"return {width}") == whole
    browser.script("document.querySelectorAll('button.word')[60].focus()")
    seen = browser.script(
        f"""const word = {frame}.querySelector('g[data-word="61"]').getBoundingClientRect();
        return [word.left, word.right]"""
    )
    assert 0 < seen[0] < seen[1] < WIDE
    assert browser.script("return document.querySelectorAll('#tab-parse *').length") < 5000


def test_conllu_is_typed_from_left_to_right_and_the_tokenizer_follows_the_language(
    browser, service
) -> None:
    show(browser, service, kind="conllu", lang="he", text=HEBREW)
    look = """const field = document.querySelector('#parse-text');
      return [getComputedStyle(field).direction, getComputedStyle(field).fontFamily]"""
    direction, font = browser.script(look)
    assert direction == "ltr"
    assert "monospace" in font
    assert field(browser, "tokenizer") == ""
    assert "Matrices over the words" in browser.text()
    choose(browser, "#parse-lang", "en")
    assert field(browser, "tokenizer") == TOKENIZER
    browser.click(".options summary")
    browser.type("#parse-tokenizer", "-of-mine")
    choose(browser, "#parse-lang", "he")
    assert field(browser, "tokenizer") == f"{TOKENIZER}-of-mine"
    choose(browser, "#parse-kind", "raw")
    assert browser.script("return document.querySelector('#parse-text').dir") == "auto"
    show(browser, service, lang="en", text="\u65e5 says hi.")
    pieces = "return document.querySelector('[data-picture=wordpieces]').textContent"
    assert "[UNK]" in browser.script(pieces)


def test_a_menu_opens_and_closes_from_the_keyboard(browser, service) -> None:
    show(browser, service, text=TEXT)
    menus = "document.querySelectorAll('.trees details.menu')"
    assert browser.script(f"return {menus}.length") == 1
    browser.type(".trees .menu summary", ENTER)
    assert browser.script(f"return {menus}[0].open")
    browser.type(".trees .menu .items button", ESCAPE)
    assert not browser.script(f"return {menus}[0].open")
    assert browser.script("return document.activeElement.tagName") == "SUMMARY"
    browser.click(".trees .menu summary")
    browser.click("#parse-text")
    assert not browser.script(f"return {menus}[0].open")


def test_colour_is_never_the_only_sign(browser, service) -> None:
    show(browser, service, text="Birds sing.", matrices="depth")
    browser.wait_for("document.querySelector('canvas')")
    tags = browser.script(
        """return [...document.querySelectorAll('.trees g[data-word] text:last-child')]
          .map((one) => [one.textContent, getComputedStyle(one).fill])"""
    )
    assert [tag for tag, _ in tags] == ["NOUN", "VERB", "PUNCT"]
    assert len({fill for _, fill in tags}) == 3
    browser.devtools(
        "Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}]
    )
    ink = "return getComputedStyle(document.querySelector('.trees .muted-line')).stroke"
    system = "return getComputedStyle(document.body).color"
    assert browser.script(ink) == browser.script(system)
    current = browser.script(
        """const [one, other] = ['#tabs [aria-current]', '#tabs a:not([aria-current])'].map((tab) =>
          getComputedStyle(document.querySelector(tab)));
        return [one.backgroundColor, other.backgroundColor, one.textDecorationLine]"""
    )
    assert current[0] != current[1]
    assert current[2] == "underline"
    browser.colours("light")


def test_a_refused_copy_is_a_file_and_says_why(browser, service, tmp_path: Path) -> None:
    show(browser, service, text=TEXT)
    browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    permission = {"name": "clipboard-write", "allowWithoutSanitization": False}
    browser.devtools("Browser.setPermission", permission=permission, setting="denied")
    press(browser, "Copy link")
    browser.wait_for_text("Saved link.txt.")
    assert re.search(r"Not copied: .*denied.* Saved link\.txt\.", browser.text())
    assert f"2 sentences, analysed by {PARSER}." in browser.text()
    assert wait_for_file(tmp_path / "link.txt").startswith(service.url.encode())


def test_a_parse_waits_until_its_model_is_loaded(browser, tmp_path: Path) -> None:
    """The process that loads the model is stopped, so the first answer is a refusal."""
    with served(tmp_path, request_deadline_seconds="15") as slow:
        browser.open(f"{slow.url}/#parse?{urlencode({'text': 'Birds sing.', 'parser': OWN})}")
        asyncio.run(until(lambda: bool(children(slow.process.pid))))
        (loading,) = children(slow.process.pid)
        loading.suspend()
        browser.wait_for_text("the page asks again by itself")
        loading.resume()
        browser.wait_for(DONE)
        assert f"1 sentence, analysed by {OWN}." in browser.text()


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
    show(browser, service, text=LONG, compare=OWN)
    assert browser.width() <= NARROW
    cut = """return ['parse-lang', 'parse-parser', 'parse-compare'].filter((id) => {
        const select = document.getElementById(id);
        const shown = select.offsetWidth;
        Object.assign(select.style, {width: 'max-content', maxWidth: 'none'});
        return select.offsetWidth > shown;
      })"""
    assert browser.script(cut) == []
    assert browser.script(UNREACHABLE) == []
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
    press_summary(browser, "Depth")
    browser.wait_for("document.querySelector('canvas')")
    before = painted(browser, "depth")
    choose(browser, "#theme", "dark")
    assert (browser.script(paper), browser.script(ink)) == dark
    assert painted(browser, "depth") != before
    choose(browser, "#theme", "")
    assert (browser.script(paper), browser.script(ink)) == light
    assert painted(browser, "depth") == before


def test_a_key_is_asked_for_used_and_not_kept(browser, tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    secret, _ = file.add("ada", role="read")
    with served(tmp_path, keys_file=str(file.path)) as guarded:
        browser.open(f"{guarded.url}/#parse?{urlencode({'text': TEXT})}")
        browser.wait_for_text("unauthorized")
        assert "Type your key here" in browser.text()
        assert browser.script("return document.activeElement.id") == "key"
        form, error = browser.script(
            "return ['#key-form', '[role=alert]'].map((one) =>"
            "document.querySelector(one).getBoundingClientRect().toJSON())"
        )
        assert form["bottom"] <= error["top"]
        browser.type("#key", f"{secret}{ENTER}")
        browser.wait_for_text("forbidden")  # to parse takes another role
        assert browser.script("return document.querySelector('#key-form').hidden")
        stored = "return [sessionStorage.length, JSON.stringify(localStorage), document.cookie]"
        sessions, local, cookie = browser.script(stored)
        assert sessions == 1
        assert secret not in local + cookie
        browser.click("#key-toggle")
        browser.click("#key-forget")
        browser.wait_for_text("unauthorized")
        assert browser.script("return sessionStorage.length") == 0


def test_the_accessibility_check_finds_nothing_serious(browser, service, axe: str) -> None:
    parse = urlencode({"text": TEXT, "compare": PARSER, "matrices": "depth"})
    views = [f"parse?{parse}", "store", "jobs", "models"]
    for width, scheme, view in product((WIDE, NARROW), ("light", "dark"), views):
        browser.resize(width)
        browser.colours(scheme)
        browser.open(f"{service.url}/#{view}")
        is_parse = view.startswith("parse")
        browser.wait_for("document.querySelector('canvas, main h1:not(.visually-hidden)')")
        browser.wait_for(DONE if is_parse else "true")
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
