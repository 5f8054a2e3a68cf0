import re
from dataclasses import replace

import pytest

from tests.cli.conftest import require
from tests.results.report.values import Parsed, best_of, many, page, parsed, report, reported, with_candidate
from tests.trials import disturbed, measurement, run, top_trial, trial
from tests.tuning.fakes import MACHINE
from tuner.analysis.ratios import Comparable
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.records import PassSeconds, Verdict
from tuner.core.reliability import RELIABLE, unreliable
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline
from tuner.results.report import content
from tuner.results.report.content import BestKnown
from tuner.results.report.headline_card import card_of, doubt_text, pass_rows
from tuner.results.report.page import page_html

EVIL = "<script>alert('x')</script>&\"'{{ 7 * 7 }}\x1b[31m"
HARMLESS = EVIL.replace("\x1b", "\\u001b")
BEST = top_trial(4, measurement(1e-3, 0.1))


def require_shown(found: Parsed, *texts: str) -> None:
    """Requires parts of the page's text; some stand in one line, with bars between them."""
    require(found.text, *(part for text in texts for part in text.split(" | ")))


def test_the_page_reports_results_machine_compiler_and_noise() -> None:
    require_shown(
        page(report(reported(many()), best=(best_of(run(2e-3), BEST),))),
        "matmul 8x8x8 f32 nn none | 950 us .. 1.05 ms | 2.00x (2.00 .. 2.00) | fake 1.0 | All 30 trials",
        "differ by 1.0%: smaller differences mean nothing | 30 trials: 30 measured, 0 failed",
        "30 measured trials of fake | load 0.50 at the start | 2026-02-01T00:00:00Z",
        "30 trials, 0 failed, best 0.001024 GFLOP/s.",
        "Line: the best so far. Bands: random 0 to 29. Dashed: FakeBLAS 1.0.",
        "1000.001024 GFLOP/s1 msunknowndecides=0 idle=0",
    )


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
    timed = replace(first, final=measurement(1e-3), reliability=RELIABLE)
    require_shown(
        page(report(reported((timed, *others, *failed), of))),
        "8 rarer kinds left out. | 1 GB/s (measured).",
        "Rings: the top trials, timed again, interleaved. Marks below: failed trials. | compile 20 trials",
        f"1 x compile {'x' * 40} trials 140 | 140failed: compileknob_0=40",
        "of what 1 thread can do. The last cache holds the problem: only the level roof bounds it. Roofs: 1",
    )


def test_of_times_that_are_not_trusted_no_share_is_reported() -> None:
    doubted = run(roofline=Roofline(1e9, 1e9), reliability=unreliable("load"))
    text = page(report(reported(tuple(map(disturbed, many())), doubted))).text
    require(text, "No share of the roofs: load.", without="% of")


def test_a_part_of_the_trials_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "TRIALS_SHOWN_OF_RUN", 10)
    monkeypatch.setattr(content, "TRIALS_SHOWN", 10)
    failed = tuple(trial(n, Failure(Stage.RUN, "crash")) for n in range(30, 60))
    found = page(report(reported((*many(), *failed))))
    assert "10 of 60 trials, the fastest and a sample" in found.text
    assert "more: tuner history --run 3 --status failed" in found.text
    assert len(found.of("tr")) == 1 + 10 + len(found.of("table", "cards")) + 3


def test_every_link_leads_somewhere_no_place_is_there_twice_and_reliability_says_why() -> None:
    trials = (*many(), trial(40, Failure(Stage.COMPILE, "no")), trial(41, Failure(Stage.RUN, "crash")))
    found = page(report(reported(trials), best=(best_of(run(), BEST),)))
    assert {each["href"][1:] for each in found.of("a")} <= found.names()
    ids = [each["id"] for _, each in found.elements if "id" in each]
    assert len(ids) == len(set(ids))
    marks = page(report(reported(many(), run(noise=None)))).of("span", "reliability")
    assert [each["class"] for each in marks] == ["reliability unknown"]
    assert marks[0]["title"] == "No code was timed twice to see how far times repeat."


def test_drawings_and_tables_are_named_for_readers_that_see_none() -> None:
    text = page_html(report(reported(many(), run(roofline=Roofline(1e9, 1e9)))))
    found = parsed(text)
    assert found.of("html") == [{"lang": "en"}]
    drawings = [each for each in found.of("svg") if each.get("aria-hidden") != "true"]
    assert len(drawings) == 2
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
    why = "ablation: found 3 measured trials of fake, it needs 20 or more."
    require(text, "noise not measured", "No code was timed twice", why, without="Dashed")
    text = page(report(reported(tuple(trial(n, Verdict(0.0, 64)) for n in range(3))))).text
    require(text, "3 of 3 candidates verified", "Nothing was timed.")
    assert "Nothing was tuned yet: tuner tune matmul" in page(report()).text


# The card of a best result.


def drawn(best: BestKnown) -> Parsed:
    return page(report(best=(best,)))


def test_a_card_reports_speed_interval_ratio_trust_and_what_to_type() -> None:
    assert Comparable(0.5, (0.4, 0.625), 0.01).times_text == "2.00x (1.60 .. 2.50)"
    require_shown(
        drawn(best_of(run(2e-3), BEST)),
        "matmul 8x8x8 f32 nn none | 1 ms 950 us .. 1.05 ms | noise 1.0% | fake knob_0=4",
        "2.00x (2.00 .. 2.00) the speed of FakeBLAS 1.0, 1 thread",
        "trial 104 of run 3 tuner export --trial 104 -o best.mlir",
    )
    ours, baseline = card_of(best_of(run(2e-3), top_trial(4, measurement(1e-3)))).speeds
    assert (ours.colour, ours.share, baseline.colour, baseline.share) == ("ours", 1, "baseline", 0.5)


def test_a_run_that_the_page_does_not_show_is_no_link() -> None:
    best = best_of(run(), BEST)
    assert [each["href"] for each in drawn(best).of("a")] == ["#best"]
    found = page(report(reported((BEST,)), best=(best,)))
    assert [each["href"] for each in found.of("a")] == ["#best", "#run-3", "#run-3"]


def test_what_noise_does_not_separate_is_counted_and_passes_reported_where_they_were_timed() -> None:
    twins = (trial(4, measurement(1e-3)), trial(5, measurement(1e-3)))
    assert "; 1 more that noise does not separate" in drawn(best_of(run(), *twins)).text
    best = best_of(run(), BEST)
    passes = (PassSeconds("Canonicalizer", 0.004, 3), PassSeconds("CSE", 0.0012, 2))
    assert "passes" not in drawn(best).text
    assert "compiled in 5 ms of 2 passes" in drawn(replace(best, passes=passes)).text
    assert pass_rows(passes)[1] == ("Canonicalizer", "4.0", "3")


def test_without_a_baseline_or_with_one_that_is_as_fast_there_is_no_ratio() -> None:
    assert "No baseline was measured next to it." in drawn(best_of(run(None), BEST)).text
    assert [bar.colour for bar in card_of(best_of(run(None), BEST)).speeds] == ["ours"]
    why = "no ratio to FakeBLAS 1.0, 1 thread: not distinguishable, the 95 % interval"
    require(drawn(best_of(run(1e-3), BEST)).text, why, "1 ms 950 us .. 1.05 ms")


def test_a_replay_offers_no_export_and_a_target_without_a_clock_no_rank() -> None:
    target = TargetName("replay", "gemm")
    replayed = replace(BEST, record=replace(BEST.record, target=target))
    text = drawn(best_of(run(None, settings=replace(run().settings, target=target)), replayed)).text
    require(text, "replayed", "tuner show 104", without="export")
    verified = tuple(trial(n, Verdict(0.0, 64)) for n in range(3))
    text = page(report(reported((*verified, trial(3, Failure(Stage.RUN, "no")))))).text
    require(text, "3 of 4 candidates verified", "Target fake has no clock: nothing is ranked.")


def test_an_unreliable_time_stands_next_to_its_badge_and_the_reason_once_on_the_page() -> None:
    reason = "another program ran"
    of = run(2e-3, reliability=unreliable(reason))
    doubted = best_of(of, disturbed(BEST, reason))
    text = drawn(doubted).text
    assert "1 ms 950 us .. 1.05 ms unreliable" in text
    assert "1 of 1 time is unreliable. Run 3: another program ran." in text
    assert text.count("another program ran") == 1
    assert "the speed of" not in text
    many = page(report(best=(doubted,) * 7)).text
    assert many.count("another program ran") == 1
    assert "7 of 7 times are unreliable. Run 3: another program ran. Each of them has its own reason." in many
    assert doubt_text([best_of(run(2e-3), BEST)]) == ""


def test_a_card_draws_the_times_as_shares_of_what_the_machine_can_do_reliable_or_not() -> None:
    roof = Roofline(4000 * run().settings.problem.flop, 1e12)
    of = replace(run(2e-3), roofline=roof)
    for best in (best_of(of, top_trial(4, measurement(1e-3))), best_of(of, disturbed(BEST, "load"))):
        bars = card_of(best).speeds
        assert [bar.colour for bar in bars] == ["ours", "baseline", "peak"]
        assert bars[2].share == 1
        assert bars[0].share == pytest.approx(2 * bars[1].share)
        assert bars[0].share < 1
