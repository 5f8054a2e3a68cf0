"""A headless Chromium that opens pages and reports their errors and requests, by the DevTools protocol.

https://chromedevtools.github.io/devtools-protocol: JSON messages, each ended by a zero byte, over two pipes.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FOUND = next((path for path in map(shutil.which, NAMES) if path), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-extensions", "--hide-scrollbars"),
    "--remote-debugging-pipe",
)
# Chromium reads commands from 3 and writes to 4: the ends of the pipes get these numbers in the child.
START = """
import fcntl, os, sys
commands, replies = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(replies, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
WAIT_S = 120


@dataclass
class Browser:
    """One page of a running browser."""

    commands: int  # file descriptors
    replies: int
    session: str = ""
    problems: list[str] = field(default_factory=list)  # messages of the console, exceptions, refused requests
    requests: list[str] = field(default_factory=list)  # addresses that the page requested
    _asked: int = 0
    _unread: bytes = b""

    def open(self, page: Path, width: int, is_dark: bool) -> None:
        """Opens a file on a screen ``width`` CSS pixels wide; clears what was recorded of earlier pages."""
        self.problems.clear()
        self.requests.clear()
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        theme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[theme])
        assert "errorText" not in self.ask("Page.navigate", url=page.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression in the page."""
        selected = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in selected, selected
        return selected["result"].get("value")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and returns its reply."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while (reply := self._next()).get("id") != self._asked:
            pass
        assert "error" not in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    def _next(self) -> dict[str, Any]:
        """Returns the next message; records messages about the page."""
        while b"\0" not in self._unread:
            readable, _, _ = select.select([self.replies], [], [], WAIT_S)
            assert readable, f"the browser told nothing for {WAIT_S} s"
            part = os.read(self.replies, 1 << 20)
            assert part, "the browser has ended"
            self._unread += part
        text, self._unread = self._unread.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._keep(message.get("method", ""), message.get("params", {}))
        return message

    def _keep(self, event: str, given: dict[str, Any]) -> None:
        if event in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.problems.append(json.dumps(given))
        if event == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Gives a browser with one empty page, and ends it."""
    assert FOUND is not None
    command_end, commands = os.pipe()
    replies, reply_end = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", START, str(command_end), str(reply_end)),
                *(FOUND, *FLAGS, f"--user-data-dir={profile}"),
            ],
            pass_fds=(command_end, reply_end),
            stderr=subprocess.DEVNULL,
        )
        os.close(command_end)
        os.close(reply_end)
        try:
            yield _attached(Browser(commands, replies))
        finally:
            os.close(commands)
            process.terminate()
            process.wait(WAIT_S)
            os.close(replies)


def _attached(browser: Browser) -> Browser:
    target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.ask(f"{domain}.enable")
    return browser
