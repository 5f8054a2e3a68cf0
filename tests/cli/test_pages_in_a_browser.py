"""The pages in a real browser: nothing on its console, nothing fetched, nothing beyond the screen's edge."""

import json
import math
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tuner
from tests.results.report.values import best_of, many, report, reported, with_candidate
from tests.trials import measurement, run, trial
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.records import Measurement
from tuner.core.reliability import RELIABLE
from tuner.core.roofline import Roofline
from tuner.core.runs import SEED, SPACE_FILE, Baseline, ChosenStrategy, InitialConfiguration
from tuner.core.trials import StoredTrial
from tuner.results.report.page import page_html

# A headless Chromium that opens pages and reports their errors and requests, by the DevTools protocol: JSON
# messages, each ended by a zero byte, over two pipes (https://chromedevtools.github.io/devtools-protocol).

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
        selected = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in selected, selected
        return selected["result"].get("value")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
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
        event, given = message.get("method", ""), message.get("params", {})
        if event in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.problems.append(json.dumps(given))
        if event == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        return message


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert FOUND is not None
    command_end, commands = os.pipe()
    replies, reply_end = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [FOUND, *FLAGS, f"--user-data-dir={profile}"]
        start = [sys.executable, "-c", START, str(command_end), str(reply_end), *command]
        process = subprocess.Popen(start, pass_fds=(command_end, reply_end), stderr=subprocess.DEVNULL)
        os.close(command_end)
        os.close(reply_end)
        try:
            running = Browser(commands, replies)
            target = running.ask("Target.createTarget", url="about:blank")["targetId"]
            running.session = running.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                running.ask(f"{domain}.enable")
            yield running
        finally:
            os.close(commands)
            process.terminate()
            process.wait(WAIT_S)
            os.close(replies)


# The page of a run of thousands of trials.

LARGE = 5000  # trials
STRATEGIES = ("matmul_cpu_packed", "matmul_cpu_direct")
KNOBS = {
    "tile_m": (2, 4, 6, 8, 10, 12, 14),
    "tile_n": (16, 32, 48, 64),
    "block_m": (0, 96, 192, 384),
    "block_n": (0, 64, 128, 256),
    "block_k": (0, 128, 256, 384),
    "unroll_k": (1, 2, 4, 8),
    "loop_order": ("ij", "ji"),
}
FAILURES = (
    Failure(Stage.COMPILE, "tile_n=48 does not divide n=512"),
    Failure(Stage.RESOURCES, "found 37 registers, allowed 32"),
    Failure(Stage.RUN, "did not end within 10 s"),
    Failure(Stage.VERIFY, "element (3, 17): found 0.25, allowed 0.5 within 1e-6"),
)
TOP_TRIALS = 8


def large_page() -> str:
    chance = random.Random(0)
    trials = [_trial(number, chance) for number in range(LARGE)]
    fastest = sorted(trials, key=lambda each: each.best_s or math.inf)[:TOP_TRIALS]
    for each in fastest:
        trials[each.number] = replace(each, final=measurement(each.best_s or 0.0, 0.02), reliability=RELIABLE)
    origins = [SPACE_FILE] * 6 + [SEED] * 8
    first = tuple(map(InitialConfiguration, (each.record.candidate for each in trials), origins))
    chosen = tuple(map(ChosenStrategy, STRATEGIES))
    settings = replace(run().settings, strategies=chosen, first=first, trials=LARGE)
    of = run(baseline_s=2.4e-3, settings=settings, roofline=Roofline(1e6, 1e6))
    return page_html(report(reported(tuple(trials), of), best=(best_of(of, *trials),)))


def _trial(number: int, chance: random.Random) -> StoredTrial:
    strategy = chance.choice(STRATEGIES)
    knobs = {name: chance.choice(values) for name, values in KNOBS.items()}
    if strategy == STRATEGIES[1]:
        del knobs["block_k"]
    return with_candidate(trial(number, _outcome(knobs, chance)), strategy, knobs)


def _outcome(knobs: Mapping[str, Any], chance: random.Random) -> Measurement | Failure:
    if knobs["tile_n"] == 48 or chance.random() < 0.05:
        return FAILURES[0 if knobs["tile_n"] == 48 else chance.randrange(1, len(FAILURES))]
    slower = abs(math.log2(knobs["tile_m"] / 8)) + abs(math.log2(knobs["tile_n"] / 32)) / 2
    slower += 0.3 * (knobs["unroll_k"] != 4) + 0.1 * (knobs["loop_order"] == "ij")
    return measurement(1.9e-3 * (1 + slower) * chance.uniform(1.0, 1.3), 0.02)


pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="no Chromium: apt-get install chromium"),
]

LIMIT_BYTES = 3_000_000
LONG = "x" * 150
# What a reader cannot get at: words beyond the screen, or beyond their drawing, outside of what scrolls.
HIDDEN = """
[...document.querySelectorAll("main *, nav, nav small")].filter((one) => {
  if (one.closest(".wide") && !one.matches(".wide")) return false;
  const box = one.getBoundingClientRect();
  if (!box.width || !box.height) return false;
  if (one.closest("nav") && innerWidth < 1024) return false;
  const edge = one.closest("nav")?.clientWidth ?? innerWidth;
  const drawing = one.tagName === "text" && one.closest("svg").getBoundingClientRect();
  return box.right > edge + 1 || box.left < -1
    || (drawing && (box.right > drawing.right + 1 || box.left < drawing.left - 1));
}).map((one) => one.outerHTML.slice(0, 200))
"""
CUT = """
[...document.querySelectorAll(".wide svg text")].filter((one) => {
  const box = one.getBoundingClientRect(), drawing = one.closest("svg").getBoundingClientRect();
  return box.width > 0 && (box.right > drawing.right + 1 || box.left < drawing.left - 1
    || box.top < drawing.top - 1 || box.bottom > drawing.bottom + 1);
}).map((one) => one.textContent)
"""
WRONG = """<!doctype html><main><p style="width: 3000px">wide</p></main>
<script>console.error("told"); throw new Error("thrown")</script><img src="http://127.0.0.1:9/x.png">"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, tuned_database: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    recording = files("tuner") / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"
    replay = Tuner(folder / "replay.db", fakes.backends())
    replay.done("tune matmul 48x64x40 --trials 30 --target", f"replay:{recording}")
    written = {name: folder / f"{name}.html" for name in ("large", "replay", "empty")}
    written["large"].write_text(large_page())
    for name in ("replay", "empty"):
        Tuner(folder / f"{name}.db", fakes.backends()).done("report -o", str(written[name]))
    return written


def test_what_would_be_wrong_is_noticed(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "wrong.html"
    page.write_text(WRONG)
    browser.open(page, 400, False)
    assert [given for given in ("told", "thrown") if given in str(browser.problems)] == ["told", "thrown"]
    assert browser.requests == [page.as_uri(), "http://127.0.0.1:9/x.png"]
    assert [text[:3] for text in browser.value(HIDDEN)] == ["<p "]


def require_fits(browser: Browser, width: int) -> None:
    assert browser.value("[document.documentElement.scrollWidth, innerWidth]") == [width, width]
    assert browser.value(HIDDEN) == []
    assert browser.value(CUT) == []


@pytest.mark.parametrize("name", ["large", "replay", "empty"])
def test_a_page_fits_screens_light_and_dark(browser: Browser, pages: dict[str, Path], name: str) -> None:
    page = pages[name]
    assert page.stat().st_size < LIMIT_BYTES
    papers = set()
    for width, is_dark in product((1280, 400), (False, True)):
        browser.open(page, width, is_dark)
        assert (browser.problems, browser.requests) == ([], [page.as_uri()])
        require_fits(browser, width)
        papers.add(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert len(papers) == 2


def test_words_however_long_stay_within_the_page(browser: Browser, tmp_path: Path) -> None:
    trials = tuple(with_candidate(each, LONG, {LONG: each.number % 3, "x": LONG}) for each in many())
    trials += (trial(90, Failure(Stage.RUN, LONG)),)
    settings = replace(run().settings, target=TargetName("replay", LONG), sampler=LONG)
    machine = replace(run().machine, name=LONG, processor=LONG)
    of = run(settings=settings, machine=machine, baseline=Baseline(LONG, 1, measurement(1e-3)))
    page = tmp_path / "long.html"
    page.write_text(page_html(report(reported(trials, of), best=(best_of(of, trials[0]),))))
    for width in (1280, 400):
        browser.open(page, width, False)
        browser.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        require_fits(browser, width)


def test_a_replay_is_on_the_page_and_the_index_stays_in_sight_and_reports_where_one_is(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["replay"], 1280, False)
    assert "replayed" in browser.value("document.querySelector('.card').textContent")
    assert browser.value("document.querySelectorAll('nav a').length") == 2
    for width in (1280, 400):
        browser.open(pages["replay"], width, False)
        assert browser.value("document.querySelector('nav a.here').textContent") == "Best"
        browser.value("new Promise((done) => { addEventListener('scroll', done); scrollTo(0, 1000); })")
        assert browser.value("document.querySelector('nav').getBoundingClientRect().top") == 0
        assert "run 1" in browser.value("document.querySelector('nav a.here').textContent")


def test_a_failure_leads_to_its_trial_and_back_and_so_a_dot(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"], 1280, False)
    browser.value("(document.querySelector('.kind').open = true, document.querySelector('.kind a').click())")
    trial = browser.value("location.hash")
    assert browser.value(f"document.querySelector('{trial} td').textContent") == "failed: compile"
    assert browser.value("document.querySelector('table.trials').closest('details').open")
    browser.value(f"document.querySelector('{trial} a').click()")
    assert browser.value("location.hash") == "#failure-3-0"
    browser.open(pages["large"], 1280, False)
    click = "new MouseEvent('click', {bubbles: true})"
    browser.value(f"document.querySelector('.dots circle').dispatchEvent({click})")
    assert browser.value("document.querySelector(location.hash).matches('tr:target')")
