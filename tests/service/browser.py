"""A real Chromium without a window, driven over W3C WebDriver by Debian's ``chromedriver``."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    # Every name but this machine's own is unknown: what a page asks of others fails.
    # Names under "test" are this machine, and no "trustworthy" loopback to the browser: it tells
    # them as little as it tells a machine of the local network.
    "--host-resolver-rules=MAP *.test 127.0.0.1 , MAP * ~NOTFOUND , EXCLUDE localhost , "
    "EXCLUDE 127.0.0.1",
)
_PATIENCE = 120.0


class Browser:
    """A session of a browser.

    Args:
        driver: Client of the driver.
        session: Path of the session.
    """

    def __init__(self, driver: httpx.Client, session: str) -> None:
        self._driver = driver
        self._session = session

    def command(self, path: str, **body: Any) -> Any:
        """One command of WebDriver; returns its value."""
        value = self._driver.post(f"{self._session}{path}", json=body).json()["value"]
        if isinstance(value, dict) and "error" in value:
            pytest.fail(f"{value['error']}: {value['message']}")
        return value

    def devtools(self, command: str, **parameters: Any) -> Any:
        """One command of Chromium's DevTools protocol."""
        return self.command("/goog/cdp/execute", cmd=command, params=parameters)

    def open(self, url: str) -> None:
        """Load a page anew, also where only the hash differs from the page before."""
        self.command("/url", url="about:blank")
        self.command("/url", url=url)

    def script(self, body: str, *arguments: Any) -> Any:
        """The result of a function body of JavaScript; promises are awaited."""
        return self.command("/execute/sync", script=body, args=list(arguments))

    def text(self) -> str:
        """The visible text of the page."""
        return str(self.script("return document.body.innerText"))

    def wait_for(self, condition: str) -> Any:
        """Wait for an expression of JavaScript to become true; returns its value."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if found := self.script(f"return {condition}"):
                return found
            time.sleep(0.1)
        return pytest.fail(f"{condition} did not become true on this page:\n{self.text()}")

    def wait_for_text(self, text: str) -> None:
        """Wait for a text to be shown."""
        self.wait_for(f"document.body.innerText.includes({text!r})")

    def click(self, selector: str) -> None:
        """Click an element as a user would: it must be in view and not be covered."""
        found = self.command("/element", using="css selector", value=selector)
        self.command(f"/element/{next(iter(found.values()))}/click")

    def type(self, selector: str, keys: str) -> None:
        """Type into an element."""
        found = self.command("/element", using="css selector", value=selector)
        self.command(f"/element/{next(iter(found.values()))}/value", text=keys)

    def accept(self) -> None:
        """Say yes to the dialogue that is open."""
        self.command("/alert/accept")

    def resize(self, width: int, height: int = 900) -> None:
        """The size of what is seen of a page, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", **size)

    def colours(self, scheme: str) -> None:
        """What the system prefers: ``light`` or ``dark``."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.devtools("Emulation.setEmulatedMedia", features=[feature])

    def complaints(self) -> list[str]:
        """What the console has said since the last call, such as what the policy refused."""
        log = self._driver.post(f"{self._session}/se/log", json={"type": "browser"}).json()
        return [entry["message"] for entry in log["value"]]

    def requested(self) -> list[str]:
        """Addresses of everything that the page has loaded."""
        return list(
            self.script("return performance.getEntriesByType('resource').map((one) => one.name)")
        )

    def width(self) -> int:
        """How wide the page is, in CSS pixels."""
        return int(self.script("return document.documentElement.scrollWidth"))

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        taken = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def open_browser(folder: Path) -> Iterator[Browser]:
    """Run a browser whose profile lies in a folder; skips the test where there is none."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("needs Debian's packages chromium and chromium-driver")
    process, address = _start(driver, folder / "chromedriver.log")
    try:
        with httpx.Client(base_url=address, timeout=_PATIENCE, trust_env=False) as client:
            arguments = [*_OPTIONS, f"--user-data-dir={folder / 'profile'}"]
            wanted = {
                "goog:chromeOptions": {"binary": chromium, "args": arguments},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            answer = client.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()
            assert "sessionId" in answer["value"], answer
            session = f"/session/{answer['value']['sessionId']}"
            try:
                yield Browser(client, session)
            finally:
                client.delete(session)
    finally:
        process.terminate()
        process.wait(60)


def _start(driver: str, log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The driver and its address. A port that is free for IPv6 may not be for IPv4; it exits."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with log.open("wb") as output:
            process = subprocess.Popen([driver, "--port=0"], stdout=output, stderr=output)
        while process.poll() is None and time.monotonic() < deadline:
            if found := re.search(r"started successfully on port (\d+)", log.read_text()):
                return process, f"http://127.0.0.1:{found[1]}"
            time.sleep(0.1)
    process.kill()
    pytest.fail(log.read_text())
