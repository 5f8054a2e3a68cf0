"""The pages in a real browser: nothing on its console, nothing fetched, nothing beyond the screen's edge."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from tests.cli.browser import FOUND, Browser, running_browser
from tests.cli.conftest import Tuner
from tests.results.report.large_database import write_large_database
from tests.results.report.values import best_of, many, report, reported, with_candidate
from tests.trials import measurement, run, trial
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.runs import Baseline
from tuner.results.report.page import page_html

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="no Chromium: apt-get install chromium"),
]

LARGE = 5000  # trials
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
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, tuned_database: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    write_large_database(folder / "large.db", LARGE)
    recording = files("tuner") / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"
    replay = Tuner(folder / "replay.db", fakes.backends())
    replay.done("tune matmul 48x64x40 --trials 30 --target", f"replay:{recording}")
    written = {name: folder / f"{name}.html" for name in ("large", "replay", "empty")}
    for name, page in written.items():
        Tuner(folder / f"{name}.db", fakes.backends()).done("report -o", str(page))
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
        browser.value("new Promise((done) => { addEventListener('scroll', done); scrollTo(0, 1500); })")
        assert browser.value("document.querySelector('nav').getBoundingClientRect().top") == 0
        assert "run 1" in browser.value("document.querySelector('nav a.here').textContent")


def test_a_failure_leads_to_its_trial_and_back_and_so_a_dot(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"], 1280, False)
    browser.value("(document.querySelector('.kind').open = true, document.querySelector('.kind a').click())")
    trial = browser.value("location.hash")
    assert browser.value(f"document.querySelector('{trial} td').textContent") == "failed: compile"
    assert browser.value("document.querySelector('table.trials').closest('details').open")
    browser.value(f"document.querySelector('{trial} a').click()")
    assert browser.value("location.hash") == "#failure-1-0"
    browser.open(pages["large"], 1280, False)
    browser.value(
        "document.querySelector('.dots circle').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    assert browser.value("document.querySelector(location.hash).matches('tr:target')")


def test_brushing_an_axis_keeps_the_lines_that_cross_there(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"], 1280, False)
    browser.value("document.querySelector('.parallel').scrollIntoView({block: 'center'})")
    x, top, bottom = browser.value(
        "(() => { const box = [...document.querySelectorAll('.axis')]"
        ".find((axis) => axis.dataset.name === 'tile_m').querySelector('line').getBoundingClientRect();"
        " return [box.x, box.top, box.bottom]; })()"
    )
    lowest = bottom - (bottom - top) / 12  # of seven values: the last alone
    drag(browser, x, bottom + 8, lowest)
    shown = browser.value("document.querySelectorAll('.lines path:not(.off)').length")
    assert LARGE / 10 < shown < LARGE / 5
    phrase = browser.value("document.querySelector('.readout').textContent")
    assert phrase.startswith(f"{shown} of {LARGE} trials; the fastest of them: trial ")
    assert "tile_m=14" in phrase
    drag(browser, x, lowest, lowest)
    assert browser.value("document.querySelectorAll('.lines path.off').length") == 0
    assert browser.problems == []


def drag(browser: Browser, x: float, start: float, end: float) -> None:
    for kind, y in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
        browser.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
