import re
from dataclasses import replace

import pytest

from tests.results.report.parsed import page, parsed
from tests.results.report.values import best_of, many, report, reported, with_candidate
from tests.trials import measurement, run, top_trial, trial
from tests.tuning.fakes import MACHINE
from tuner.core.errors import Failure, Stage
from tuner.core.machine import Roofline
from tuner.core.records import Verdict
from tuner.core.runs import Baseline
from tuner.results.report import content
from tuner.results.report.page import page_html

EVIL = "<script>alert('x')</script>&\"'{{ 7 * 7 }}\x1b[31m"
HARMLESS = EVIL.replace("\x1b", "\\u001b")
BEST = top_trial(4, measurement(1e-3, 0.1))


def test_the_page_reports_results_machine_compiler_and_noise() -> None:
    text = page(report(reported(many()), best=(best_of(run(2e-3), BEST),))).text
    for wanted in (
        "matmul 8x8x8 f32 nn none",
        "950 us .. 1.05 ms",
        "2.00x (2.00 .. 2.00)",
        "fake 1.0",
        "differ by 1.0%: smaller differences mean nothing",
        "30 trials: 30 measured, 0 failed",
        "30 measured trials of fake",
        "Pairs of values",
        "All 30 trials",
        "load 0.50 at the start",
        "2026-02-01T00:00:00Z",
        "30 trials, 0 failed, best 0.001024 GFLOP/s.",
        "Line: the best so far. Bands: random 0 to 29. Dashed: FakeBLAS 1.0.",
        "decides=0, idle=0: 2 timed",
        "1000.001024 GFLOP/s1 msunknowndecides=0 idle=0",
    ):
        assert wanted in text


def test_the_page_needs_nothing_from_on_another_machine() -> None:
    text = page_html(report(reported(many())))
    found = parsed(text)
    assert not {tag for tag, _ in found.elements} & {"link", "img", "iframe", "object", "form"}
    targets = [value for _, each in found.elements for name, value in each.items() if name in ("src", "href")]
    assert all(target.startswith("#") for target in targets)
    assert not re.search(r"url\(|@import|https?:", text.replace("http://www.w3.org/2000/svg", ""))
    (policy,) = (each["content"] for each in found.of("meta") if "http-equiv" in each)
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'", policy)
    assert len(text) < 60_000


def test_a_run_with_remeasurement_failures_and_a_roofline_reports_them() -> None:
    failed = tuple(trial(n, Failure(Stage.COMPILE, "x" * n)) for n in range(40, 60))
    of = run(roofline=Roofline(1e9, 1e9), machine=replace(MACHINE, l3_bytes=10**9))
    first, *others = many()
    text = page(report(reported((replace(first, final=measurement(1e-3)), *others, *failed), of))).text
    for wanted in (
        "decides=0, idle=0: 100.0% of the best, 2 timed",
        "Rings: the top trials, timed again, interleaved. Marks below: failed trials.",
        "compile 20 trials",
        "1 x compile " + "x" * 40 + " trials 140",
        "8 rarer kinds left out.",
        "140failed: compileknob_0=40",
        "of what 1 thread can do. The last cache holds the problem: only the level roof bounds it. Roofs: 1",
        "1 GB/s (measured).",
    ):
        assert wanted in text


def test_of_times_that_are_not_trusted_no_share_is_reported() -> None:
    text = page(report(reported(many(), run(roofline=Roofline(1e9, 1e9), unreliable="load")))).text
    assert "No share of the roofs: load." in text
    assert "decides=0, idle=0: 2 timed" in text
    assert "% of" not in text


def test_a_part_of_the_trials_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "TRIALS_SHOWN_OF_RUN", 10)
    monkeypatch.setattr(content, "TRIALS_SHOWN", 10)
    failed = tuple(trial(n, Failure(Stage.RUN, "crash")) for n in range(30, 60))
    found = page(report(reported((*many(), *failed))))
    assert "10 of 60 trials, the fastest and a sample" in found.text
    assert "more: tuner history --run 3 --status failed" in found.text
    assert len(found.of("tr")) == 1 + 10 + len(found.of("table", "cards")) + 3


def test_every_link_leads_somewhere_no_place_is_there_twice_and_a_badge_says_why() -> None:
    trials = (*many(), trial(40, Failure(Stage.COMPILE, "no")), trial(41, Failure(Stage.RUN, "crash")))
    found = page(report(reported(trials), best=(best_of(run(), BEST),)))
    assert {each["href"][1:] for each in found.of("a")} <= found.names()
    ids = [each["id"] for _, each in found.elements if "id" in each]
    assert len(ids) == len(set(ids))
    badges = page(report(reported(many(), run(noise=None)))).of("span", "badge")
    assert [each["class"] for each in badges] == ["badge unknown"]
    assert badges[0]["title"] == "No code was timed twice to see how far times repeat."


def test_drawings_and_tables_are_named_for_readers_that_see_none() -> None:
    text = page_html(report(reported(many(), run(roofline=Roofline(1e9, 1e9)))))
    found = parsed(text)
    assert found.of("html") == [{"lang": "en"}]
    drawings = [each for each in found.of("svg") if each.get("aria-hidden") != "true"]
    assert len(drawings) == 4
    assert all(each["role"] == "img" for each in drawings)
    assert text.count("<title>") >= 1 + len(drawings)
    assert all(each.get("scope") in ("col", "row") for each in found.of("th"))
    assert sum("data-label" not in each for each in found.of("td")) == 4 * 30  # those of the list of trials
    assert set(found.of("section")[0]["aria-labelledby"].split()) <= found.names()


def test_whatever_a_database_holds_is_escaped() -> None:
    evil = trial(0, Failure(Stage.RUN, EVIL), script=EVIL)
    timed = tuple(with_candidate(each, EVIL, {EVIL: EVIL, "x": str(each.number)}) for each in many())
    machine = replace(MACHINE, name=EVIL, processor=EVIL)
    of = run(machine=machine, baseline=Baseline(EVIL, 1, measurement(1e-3)), tuner_version=EVIL, status=EVIL)
    text = page_html(report(reported((evil, *timed[1:]), of), best=(best_of(of, timed[0]),)))
    assert "<script>alert" not in text
    assert "\x1b" not in text
    assert parsed(text).text.count(HARMLESS) >= 8
    assert len(parsed(text).of("script")) == 1


def test_what_is_left_out_was_not_measured_or_not_timed_is_reported() -> None:
    assert "3 earlier runs left out" in page(report(reported(many()), left_out=3)).text
    assert "left out" not in page(report(reported(many()))).text
    text = page(report(reported(many()[:3], run(None, noise=None, seconds=None, load_average=None)))).text
    assert "noise not measured" in text
    assert "No code was timed twice" in text
    assert "Dashed" not in text
    assert "ablation: found 3 measured trials of fake, it needs 20 or more." in text
    text = page(report(reported(tuple(trial(n, Verdict(0.0, 64)) for n in range(3))))).text
    assert "3 of 3 candidates verified" in text
    assert "Nothing was timed." in text
    assert "Nothing was tuned yet: tuner tune matmul" in page(report()).text
