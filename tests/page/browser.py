"""A real Chromium without a window, driven through its own chromedriver by the WebDriver protocol: HTTP and JSON."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Callable

import requests

from tests.harness.eventually import HANGS_SECONDS, eventually

# As root it has no sandbox of its own; and on a machine without a way out it must look for nobody there.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--lang=en-GB",
    "--force-color-profile=srgb",
]
DESKTOP, PHONE = (1440, 900), (390, 844)
Pixels = tuple[int, int]


class Browser:
    """One window; `running` starts it."""

    def __init__(self, session: requests.Session, url: str) -> None:
        self._session, self._url = session, url

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator[Browser]:
        with contextlib.ExitStack() as stack:
            profile = tempfile.mkdtemp(prefix="chromium-")
            stack.callback(shutil.rmtree, profile, ignore_errors=True)
            command = ["chromedriver", "--port=0"]
            driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            stack.callback(_end, driver)
            session = stack.enter_context(requests.Session())
            session.trust_env = False
            options = {"binary": "/usr/bin/chromium", "args": [*FLAGS, f"--user-data-dir={profile}"]}
            wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
            base = f"http://127.0.0.1:{_port(driver)}/session"
            made = session.post(base, json=wanted, timeout=HANGS_SECONDS).json()["value"]
            assert "sessionId" in made, made
            browser = cls(session, f"{base}/{made['sessionId']}")
            stack.callback(browser._quit)
            yield browser

    def open(self, url: str) -> None:
        self._post("url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that this JavaScript function returns."""
        return self._post("execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        """The text that a person reads there; empty if there is no such element."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def shows(self, words: str, selector: str = "main", within_seconds: float = 60) -> str:
        """Wait until these words stand there; all that stands there then."""

        def found() -> str:
            text = self.text(selector)
            return text if words.lower() in text.lower() else ""

        try:
            return eventually(found, f"{selector} shows {words!r}", within_seconds, every_seconds=0.1)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it shows {self.text('body')!r}; console: {self.complaints()}") from None

    def keys(self, selector: str, keys: str) -> None:
        """Types them as a person does."""
        found = self._post("element", {"using": "css selector", "value": selector})
        self._post(f"element/{next(iter(found.values()))}/value", {"text": keys})

    def emulate(self, size: Pixels = DESKTOP, *, dark: bool = False, calm: bool = False) -> None:
        """The device and the wishes of the reader."""
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.devtools("Emulation.setDeviceMetricsOverride", **metrics)
        wishes = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce" if calm else "no-preference",
        }
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": k, "value": v} for k, v in wishes.items()])

    def picture(self) -> bytes:
        """The window's content as PNG."""
        return b64decode(self.devtools("Page.captureScreenshot", format="png", optimizeForSpeed=False)["data"])

    def new_window(self) -> str:
        """Opens another window and goes on there; returns its name, for `switch`."""
        window = str(self._post("window/new", {"type": "window"})["handle"])
        self.switch(window)
        return window

    def switch(self, window: str) -> None:
        self._post("window", {"handle": window})

    def before_each_page(self, script: str) -> Callable[[], None]:
        """Runs it before any script of a page that is opened from now on; the function that it returns ends that."""
        made = self.devtools("Page.addScriptToEvaluateOnNewDocument", source=script)
        return lambda: self.devtools("Page.removeScriptToEvaluateOnNewDocument", **made)

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self._post("goog/cdp/execute", {"cmd": command, "params": parameters})

    def complaints(self) -> list[str]:
        """Errors on the console since the last call, such as a breach of the content security policy."""
        found = self._post("se/log", {"type": "browser"})
        return [each["message"] for each in found if each["level"] == "SEVERE"]

    def _post(self, command: str, body: Any) -> Any:
        reply = self._session.post(f"{self._url}/{command}", json=body, timeout=HANGS_SECONDS).json()["value"]
        assert not (isinstance(reply, dict) and "error" in reply), reply
        return reply

    def _quit(self) -> None:
        with contextlib.suppress(requests.RequestException):
            self._session.delete(self._url, timeout=30)


def _port(driver: subprocess.Popen[str]) -> int:
    assert driver.stdout is not None
    for line in driver.stdout:
        found = re.search(r"started successfully on port (\d+)", line)
        if found:
            return int(found[1])
    raise ChildProcessError("chromedriver ended before it listened")


def _end(driver: subprocess.Popen[str]) -> None:
    driver.terminate()
    driver.wait(30)
    assert driver.stdout is not None
    driver.stdout.close()
