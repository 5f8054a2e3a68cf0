from dataclasses import replace

from tests.results.report.parsed import Parsed, page
from tests.results.report.values import best_of, report, reported
from tests.trials import measurement, run, top_trial, trial
from tuner.analysis.ratios import Comparable
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.records import PassSeconds, Verdict
from tuner.results.report.content import BestKnown
from tuner.results.report.run_section import card_of, pass_rows

TIMED = top_trial(4, measurement(1e-3, 0.1))


def drawn(best: BestKnown) -> Parsed:
    return page(report(best=(best,)))


def test_a_card_reports_speed_interval_ratio_trust_and_what_to_type() -> None:
    assert Comparable(0.5, (0.4, 0.625), 0.01).times_text == "2.00x (1.60 .. 2.50)"
    text = drawn(best_of(run(2e-3), TIMED)).text
    for wanted in (
        "matmul 8x8x8 f32 nn none",
        "0.001024 GFLOP/s 1 ms (950 us .. 1.05 ms)",
        "2.00x (2.00 .. 2.00) the speed of FakeBLAS 1.0, 1 thread",
        "noise 1.0%",
        "fake knob_0=4",
        "trial 104 of run 3 tuner export --trial 104 -o best.mlir",
    ):
        assert wanted in text
    ours, baseline = card_of(best_of(run(2e-3), top_trial(4, measurement(1e-3)))).speeds
    assert (ours.kind, ours.share, baseline.kind, baseline.share) == ("ours", 1, "baseline", 0.5)


def test_a_run_that_the_page_does_not_show_is_no_link() -> None:
    best = best_of(run(), TIMED)
    assert [each["href"] for each in drawn(best).of("a")] == ["#best"]
    found = page(report(reported((TIMED,)), best=(best,)))
    assert [each["href"] for each in found.of("a")] == ["#best", "#run-3", "#run-3"]


def test_what_noise_does_not_separate_is_counted_and_passes_reported_where_they_were_timed() -> None:
    twins = (trial(4, measurement(1e-3)), trial(5, measurement(1e-3)))
    assert "; 1 more that noise does not separate" in drawn(best_of(run(), *twins)).text
    best = best_of(run(), TIMED)
    passes = (PassSeconds("Canonicalizer", 0.004, 3), PassSeconds("CSE", 0.0012, 2))
    assert "passes" not in drawn(best).text
    assert "compiled in 5 ms of 2 passes" in drawn(replace(best, passes=passes)).text
    assert pass_rows(passes)[1] == ("Canonicalizer", "4.0", "3")


def test_without_a_baseline_or_with_one_that_is_as_fast_there_is_no_ratio() -> None:
    assert "No baseline was measured next to it." in drawn(best_of(run(None), TIMED)).text
    assert [bar.kind for bar in card_of(best_of(run(None), TIMED)).speeds] == ["ours"]
    text = drawn(best_of(run(1e-3), TIMED)).text
    assert "no ratio to FakeBLAS 1.0, 1 thread: not distinguishable, the 95 % interval" in text
    assert "0.001024 GFLOP/s 1 ms" in text


def test_a_replay_offers_no_export_and_a_target_without_a_clock_no_rank() -> None:
    target = TargetName("replay", "gemm")
    replayed = replace(TIMED, record=replace(TIMED.record, target=target))
    text = drawn(best_of(run(None, settings=replace(run().settings, target=target)), replayed)).text
    assert "replayed" in text
    assert "tuner show 104" in text
    assert "export" not in text
    verified = tuple(trial(n, Verdict(0.0, 64)) for n in range(3))
    text = page(report(reported((*verified, trial(3, Failure(Stage.RUN, "no")))))).text
    assert "3 of 4 candidates verified" in text
    assert "Target fake has no clock: nothing is ranked." in text


def test_an_unreliable_time_is_no_headline_and_its_reason_stands_there_once() -> None:
    text = drawn(best_of(run(2e-3, unreliable="another program ran"), TIMED)).text
    assert "no reliable time 1 ms (950 us .. 1.05 ms)" in text
    assert text.count("another program ran") == 1
    assert "GFLOP/s" not in text
    assert "the speed of" not in text
