from dataclasses import replace

from tests.output.report.parsed import parsed
from tests.output.report.values import best_of, reported
from tests.trials import finalist, measurement, run, trial
from tuner.analysis.comparison import Comparable
from tuner.core.pass_seconds import PassSeconds
from tuner.core.record import Verdict
from tuner.core.target_name import TargetName
from tuner.output.report.bars import WIDTH
from tuner.output.report.card import card, speed_ratio_text, verified_card

TIMED = finalist(4, measurement(1e-3, 0.1))


def test_the_ratio_to_the_baseline_has_its_interval() -> None:
    assert speed_ratio_text(Comparable(0.5, (0.4, 0.625), 0.01)) == "2.00x (1.60 .. 2.50)"


def test_a_card_tells_speed_interval_ratio_trust_and_what_to_type() -> None:
    text = parsed(card(best_of(run(2e-3), TIMED), frozenset({3}))).text
    for wanted in (
        "matmul 8x8x8 f32 nn none",
        "0.001024 GFLOP/s",
        "1 ms (950 us .. 1.05 ms)",
        "2.00x (2.00 .. 2.00) the speed of FakeBLAS 1.0, 1 thread",
        "noise 1.0%",
        "fake knob_0=4",
        "trial 104 of run 3",
        "tuner export --trial 104 -o best.mlir",
    ):
        assert wanted in text


def test_both_speeds_are_drawn_to_one_scale() -> None:
    drawn = parsed(card(best_of(run(2e-3), trial(4, measurement(1e-3))), frozenset()))
    ours, baseline = (float(drawn.of("rect", kind)[0]["width"]) for kind in ("ours", "baseline"))
    assert (ours, baseline) == (WIDTH, WIDTH / 2)


def test_a_run_that_the_page_does_not_show_is_no_link() -> None:
    best = best_of(run(), TIMED)
    assert [each["href"] for each in parsed(card(best, frozenset({3}))).of("a")] == ["#run-3"]
    assert parsed(card(best, frozenset({4}))).of("a") == []


def test_what_noise_does_not_separate_is_counted() -> None:
    twins = (trial(4, measurement(1e-3)), trial(5, measurement(1e-3)))
    assert "; 1 more that noise does not separate" in parsed(card(best_of(run(), *twins), frozenset())).text


def test_without_a_baseline_nothing_is_compared() -> None:
    drawn = parsed(card(best_of(run(None), TIMED), frozenset()))
    assert "No baseline was measured beside it." in drawn.text
    assert drawn.of("rect", "baseline") == []


def test_a_replay_is_told_as_such_and_offers_no_export() -> None:
    settings = replace(run().settings, target=TargetName("replay", "gemm"))
    text = parsed(card(best_of(run(None, settings=settings), TIMED), frozenset())).text
    assert "replayed" in text
    assert "tuner show 104" in text
    assert "export" not in text


def test_a_target_without_a_clock_tells_what_was_verified() -> None:
    verified = tuple(trial(n, Verdict(0.0, 64)) for n in range(3))
    text = parsed(verified_card(reported((*verified, trial(3, None))))).text
    assert "3 of 4 candidates verified" in text
    assert "Target fake has no clock: nothing is ranked." in text


def test_of_an_unreliable_answer_no_ratio_is_told() -> None:
    text = parsed(card(best_of(run(2e-3, unreliable="load"), TIMED), frozenset())).text
    assert "unreliable next to FakeBLAS 1.0, 1 thread: load" in text
    assert "the speed of" not in text


def test_passes_are_told_where_they_were_timed() -> None:
    best = best_of(run(), TIMED)
    passes = (PassSeconds("Canonicalizer", 0.004, 3), PassSeconds("CSE", 0.0012, 2))
    assert "passes" not in parsed(card(best, frozenset())).text
    drawn = parsed(card(replace(best, passes=passes), frozenset()))
    assert "compiled in 5 ms of 2 passes" in drawn.text
    assert "Canonicalizer4.03" in drawn.text.replace(" ", "").replace("\n", "")
